"""Hints about a request's answer, sent with its sampling parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

PREDICTED_KEY = "predicted_tokens"
"""Key in `SamplingParams.extra_args`: expected answer length, in tokens."""

SCORE_KEY = "rank_score"
"""Key in `SamplingParams.extra_args`: a learned rank, lower first."""

TEXT_KEY = "rank_text"
"""Key in `SamplingParams.extra_args`: the text to rank by, instead of the prompt."""


CLIENT_KEY = "client"
"""Key in `SamplingParams.extra_args`: name of the client, for `trust_hints`."""


class Hint(NamedTuple):
    """Expectation of an answer at the arrival of its request.

    Attributes
    ----------
    predicted : int
        Length, in tokens.
    score : float
        A learned rank; nan if there is none.
    has_length : bool
        Whether the length is the request's own hint, which has priority.
    text : str, optional
        Text to rank by, instead of the prompt.
    client : str, optional
        Name of the client.
    """

    predicted: int
    score: float
    has_length: bool
    text: str | None
    client: str | None


NUMBERS = (int, float)


@dataclass(frozen=True, slots=True)
class Hints:
    """Reads hints; missing or invalid ones are replaced and never raise.

    Attributes
    ----------
    max_predicted : int, optional
        Expected length of a request without a hint, as long as no length was learned,
        limited by its `max_tokens`, which is the default.
    """

    max_predicted: int | None = None

    def read(
        self, extra: dict[str, Any], max_tokens: int, learned: int | None = None
    ) -> Hint:
        """Read the hints in `extra_args` for an answer of at most `max_tokens`.

        `learned` is the length predicted from completed answers, if there are any.
        """
        predicted = _number(extra.get(PREDICTED_KEY))
        score = _number(extra.get(SCORE_KEY))
        text, client = extra.get(TEXT_KEY), extra.get(CLIENT_KEY)
        has_length = predicted is not None and predicted >= 1
        if predicted is None or not has_length:
            guesses = (learned, self.max_predicted, max_tokens)
            predicted = next(guess for guess in guesses if guess is not None)
        return Hint(
            max(1, min(round(predicted), max_tokens)),
            math.nan if score is None else score,
            has_length,
            text if isinstance(text, str) else None,
            client if isinstance(client, str) else None,
        )


def _number(value: object) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    return number if math.isfinite(number) else None
