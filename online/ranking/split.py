"""Split of prompts, not of rows, into training, validation and test parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Positions of the prompts of each part."""

    train: Ints
    validation: Ints
    test: Ints


def split(
    texts: Sequence[str], seed: int, validation: float = 0.1, test: float = 0.2
) -> Split:
    """Assign each prompt to a part by a hash of its text and the seed.

    The part of a prompt does not depend on the other prompts: the training prompts of
    one model are in no other model's test part.

    Parameters
    ----------
    texts : sequence of str
        Distinct prompts.
    seed : int
    validation, test : float
        Expected shares; the rest is for training.

    Raises
    ------
    RankingError
        If a part has fewer than two prompts; a test share of 0 means no test part.
    """
    for name, share in (("validation", validation), ("test", test)):
        if not 0 <= share < 1:
            raise RankingError(f"{name} share = {share} but must be from 0 to below 1.")
    if not validation > 0 or validation + test >= 1:
        raise RankingError(
            f"shares for validation and test are {validation} and {test} but must "
            "leave a share for training, and validation must be above 0."
        )
    position = np.array([_position(text, seed) for text in texts])
    of_test = position < test
    of_validation = ~of_test & (position < test + validation)
    parts = Split(
        np.flatnonzero(~of_test & ~of_validation),
        np.flatnonzero(of_validation),
        np.flatnonzero(of_test),
    )
    for name, part in (
        ("training", parts.train),
        ("validation", parts.validation),
        ("test", parts.test),
    ):
        if len(part) < 2 and not (name == "test" and test == 0):
            raise RankingError(
                f"{len(texts):,} prompts are too few to split: the {name} part has "
                f"{len(part)} but needs two; give more prompts or another seed."
            )
    return parts


def _position(text: str, seed: int) -> float:
    """Hash text and seed to a number from 0 to below 1."""
    name = f"{seed}:{text}".encode()
    number = int.from_bytes(hashlib.blake2b(name, digest_size=6).digest(), "big")
    return number / 2**48
