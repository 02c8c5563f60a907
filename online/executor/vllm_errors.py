"""Errors of vLLM at its start, reported in one line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sortedf.errors import SortedfError

if TYPE_CHECKING:
    from collections.abc import Iterator


class EngineStartError(SortedfError, RuntimeError):
    """The engine did not start."""


class EngineSettingsError(SortedfError, ValueError):
    """vLLM refuses the model or the settings."""


@contextmanager
def settings_refused() -> Iterator[None]:
    """Turn any error of vLLM about settings into one line."""
    try:
        yield
    except Exception as error:
        raise EngineSettingsError(
            f"vLLM refuses the model or the settings: {reason(error)}"
        ) from error


@contextmanager
def start_failed() -> Iterator[None]:
    """Turn any error of vLLM while an engine starts into one line."""
    try:
        yield
    except Exception as error:
        raise EngineStartError(f"the engine did not start: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Return the reason of an error, without pydantic's additions."""
    errors = getattr(error, "errors", None)
    if callable(errors):
        return "; ".join(str(one["msg"]) for one in errors())
    return str(error) or type(error).__name__
