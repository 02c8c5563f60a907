"""What goes wrong with rankers, beside plain misuse."""

from __future__ import annotations

from sortedf.errors import SortedfError


class RankingError(SortedfError, ValueError):
    """Rows, a ranker's folder or prompts that cannot be used; the message says why."""
