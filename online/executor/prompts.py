"""Random prompts, for runs in which answers are not used."""

from __future__ import annotations

import numpy as np

from online.executor.tiny_model import VOCABULARY


def random_prompt(i: int, length: int) -> list[int]:
    """Draw `length` token ids; the same request always gets the same prompt."""
    drawn = np.random.default_rng(i).integers(3, VOCABULARY, length)
    return [int(token) for token in drawn]
