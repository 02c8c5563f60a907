"""The engines that `sortedf run` can drive, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from online.requests import RequestTable
    from online.state import Policy
    from online.step_engine import Engine
    from sortedf.engine_model import EngineModel
    from sortedf.request_set import RequestSet

EngineMaker: TypeAlias = "Callable[[RequestTable, Policy], Engine]"
"""Starts an engine for a table of requests and a policy."""


def refusal(engine: EngineModel, prefill: int, decode: int) -> str | None:
    """Why a request can never run by the engine's rules, or None if it can."""
    return engine.refusal(prefill, decode)


@dataclass(frozen=True, slots=True)
class EngineKind:
    """An engine that can be driven.

    Attributes
    ----------
    about : str
        Description for the help.
    prepare : callable
        Called with the engine's parameters, the requests, and the name of a language
        model or None; returns a function that starts the engine. Raises a ValueError if
        they do not fit together.
    takes_model : bool
        Whether it runs a language model, given by `--model`.
    refusal : callable
        Called with the engine's parameters and a request's two lengths; returns why
        that request can never run, or None.
    """

    about: str
    prepare: Callable[[EngineModel, RequestSet, str | None], EngineMaker]
    takes_model: bool = False
    refusal: Callable[[EngineModel, int, int], str | None] = refusal


ENGINES: Table[EngineKind] = Table("engine", "online.engines")
"""Engines by name; each is a file that registers itself."""
