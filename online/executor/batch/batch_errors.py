"""Errors of a batch as a whole."""

from __future__ import annotations

from sortedf.errors import SortedfError


class BatchFileError(SortedfError, ValueError):
    """A batch file or length file is invalid; the message names file, line, field."""


class JournalError(SortedfError, ValueError):
    """The journal of the output cannot be used; the message states a remedy."""


class UnfinishedError(SortedfError, RuntimeError):
    """The run ended early; finished requests are kept and the same command resumes."""


class EngineGoneError(Exception):
    """The engine is dead; its unfinished requests count as not sent."""
