"""The error class of rankers."""

from __future__ import annotations

from sortedf.errors import SortedfError


class RankingError(SortedfError, ValueError):
    """Rows, a ranker's folder or prompts are unusable; the message says why."""
