"""What a request says of its own answer: hints that travel with its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

PREDICTED_KEY = "predicted_tokens"
"""Key in `SamplingParams.extra_args`: expected answer length, in tokens."""

SCORE_KEY = "rank_score"
"""Key in `SamplingParams.extra_args`: a learned rank, lower first."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Expected answer length in tokens, and a learned rank (nan if there is none)."""

    predicted: int
    score: float


@dataclass(frozen=True, slots=True)
class Hints:
    """Reads hints; what is missing or makes no sense is replaced, never refused.

    Attributes
    ----------
    max_predicted : int, optional
        Length to expect of a request that says nothing and has no limit below it; by
        default its `max_tokens`.
    """

    max_predicted: int | None = None

    def read(self, extra: dict[str, Any], max_tokens: int) -> Hint:
        """Read what `extra_args` says of an answer of at most `max_tokens`."""
        predicted = _number(extra.get(PREDICTED_KEY))
        score = _number(extra.get(SCORE_KEY))
        if predicted is None or predicted < 1:
            predicted = max_tokens if self.max_predicted is None else self.max_predicted
        return Hint(
            max(1, min(round(predicted), max_tokens)),
            math.nan if score is None else score,
        )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
