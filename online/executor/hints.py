"""What a request says of its own answer: hints that travel with its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

PREDICTED_KEY = "predicted_tokens"
"""Key in `SamplingParams.extra_args`: expected answer length, in tokens."""

SCORE_KEY = "rank_score"
"""Key in `SamplingParams.extra_args`: a learned rank, lower first."""

TEXT_KEY = "rank_text"
"""Key in `SamplingParams.extra_args`: the text to rank by, in place of the prompt."""


class Hint(NamedTuple):
    """What is expected of an answer when its request comes.

    Attributes
    ----------
    predicted : int
        Length, in tokens.
    score : float
        A learned rank; nan if there is none.
    told : bool
        Whether the length is the request's own word, which nothing overrules.
    text : str, optional
        What to rank by in place of the prompt.
    """

    predicted: int
    score: float
    told: bool
    text: str | None


NUMBERS = (int, float)


@dataclass(frozen=True, slots=True)
class Hints:
    """Reads hints; what is missing or makes no sense is replaced, never refused.

    Attributes
    ----------
    max_predicted : int, optional
        Length to expect of a request that says nothing, while nothing was learned from
        others, and that has no limit below it; by default its `max_tokens`.
    """

    max_predicted: int | None = None

    def read(
        self, extra: dict[str, Any], max_tokens: int, learned: int | None = None
    ) -> Hint:
        """Read what `extra_args` says of an answer of at most `max_tokens`.

        `learned` is the length that other answers lead to expect, if there were any.
        """
        predicted = _number(extra.get(PREDICTED_KEY))
        score = _number(extra.get(SCORE_KEY))
        text = extra.get(TEXT_KEY)
        told = predicted is not None and predicted >= 1
        if predicted is None or not told:
            guesses = (learned, self.max_predicted, max_tokens)
            predicted = next(guess for guess in guesses if guess is not None)
        return Hint(
            max(1, min(round(predicted), max_tokens)),
            math.nan if score is None else score,
            told,
            text if isinstance(text, str) else None,
        )


def _number(value: object) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    return number if math.isfinite(number) else None
