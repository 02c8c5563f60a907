"""Settings of the engine of a batch, as on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of an engine; None leaves a choice to vLLM.

    Attributes
    ----------
    model : str
        Folder or hub name.
    kv_budget : int, optional
        KV cache in tokens, of which whole blocks are used.
    block_size, max_num_seqs, max_batched_tokens, max_model_len : int, optional
        As in `EngineModel`; longest prompt and answer together.
    served_model_name : str, optional
        Name of the model in the requests.
    arguments : mapping
        Other arguments of vLLM's engine, by vLLM's names.
    """

    model: str
    kv_budget: int | None = None
    block_size: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    max_model_len: int | None = None
    served_model_name: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


def read_arguments(texts: Iterable[str]) -> dict[str, Any]:
    """Read arguments given as `name=value`; a value that is no JSON is a text.

    Raises
    ------
    ValueError
        If one has no name or no value, or is given twice.
    """
    arguments: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not name or not equals:
            raise ValueError(f"--engine-arg {text}: must be NAME=VALUE.")
        if name in arguments:
            raise ValueError(f"--engine-arg {text}: {name} is given twice.")
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    return arguments
