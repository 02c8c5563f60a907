"""What can go wrong with a batch, beside its single requests."""

from __future__ import annotations

from sortedf.errors import SortedfError


class BatchFileError(SortedfError, ValueError):
    """A batch file or length file is no such file; names file, line and field."""


class JournalError(SortedfError, ValueError):
    """The journal beside the output cannot be used; the message says what to do."""


class UnfinishedError(SortedfError, RuntimeError):
    """The run ended early; what is done is kept and the same command goes on."""


class EngineGoneError(Exception):
    """The engine is dead; requests that it had are as if they had never been sent."""
