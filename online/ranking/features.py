"""Simple features of a prompt's text, for gradient boosting."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TELLING = (
    "write", "list", "explain", "describe", "essay", "story", "poem", "code", "python",
    "function", "summarize", "translate", "classify", "name", "what", "why", "how",
    "who", "when", "where", "which", "is", "are", "can", "step", "example", "detailed",
    "short", "brief", "sentence", "word", "only", "answer", "plan", "prove", "find",
    "compute", "email", "letter", "recipe", "idea", "difference", "best", "create",
)  # fmt: skip
"""Words whose presence correlates with the answer length."""

WORD = re.compile(r"[^\W\d_]+")
NUMBER = re.compile(r"\d+")
MOST_LETTERS = 20_000
"""Characters above which only both ends of a prompt are used."""


def features(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return a row of features for each prompt: counts, shares, and keywords."""
    return np.array([_features(text) for text in texts])


def _features(text: str) -> list[float]:
    kept = text
    if len(text) > MOST_LETTERS:
        kept = text[: MOST_LETTERS // 2] + text[-MOST_LETTERS // 2 :]
    words = [word.lower() for word in WORD.findall(kept)]
    numbers = [min(float(number), 1e9) for number in NUMBER.findall(kept)]
    letters, num_words = len(text), max(1, len(words))
    present = set(words)
    return [
        math.log1p(letters),
        len(words),
        kept.count("\n"),
        kept.count("?"),
        kept.count("."),
        kept.count(","),
        sum(not letter.isalnum() and not letter.isspace() for letter in kept),
        sum(map(len, words)) / num_words,
        len(present) / num_words,
        len(numbers),
        math.log1p(max(numbers, default=0.0)),
        math.log1p(sum(numbers)),
        sum(letter.isupper() for letter in kept) / max(1, len(kept)),
        float("```" in kept or "def " in kept),
        float("\\" in kept),
        *(float(word in present) for word in TELLING),
    ]
