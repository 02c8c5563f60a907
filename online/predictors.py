"""Predictors of answer lengths that learn from completed requests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from online.named import check_options
from online.prediction import RemainingLife
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Predictor(Protocol):
    """Predicts answer lengths in one run, in the simulator or in an engine."""

    def predict(self, made: int = 0) -> int | None:
        """Predict the length of an answer with `made` tokens; None without data."""
        ...

    def observe(self, lengths: Sequence[int]) -> None:
        """Learn from the lengths of completed answers."""
        ...


PREDICTORS: Table[Callable[..., Predictor]] = Table("predictor")
"""Functions that create predictors, by name; options by keyword."""


def make_predictor(name: str, **options: int) -> Predictor:
    """Create a predictor.

    Parameters
    ----------
    name : str
        One of `PREDICTORS`.
    **options
        Options of that predictor.

    Examples
    --------
    >>> history = make_predictor("history", least=2)
    >>> history.observe([10, 30])
    >>> history.predict(), history.predict(made=15)
    (20, 30)
    """
    predictor = PREDICTORS.find(name)
    check_options("predictor", name, predictor, options)
    return predictor(**options)


class History:
    """Predicts the mean of the observed answers longer than the tokens made.

    Observations are added in batches that grow with their number, so that the cost per
    answer does not grow with the uptime of a server.

    Parameters
    ----------
    longest : int
        Largest length distinguished; longer answers count as this.
    least : int
        Observed answers before the first prediction.
    """

    def __init__(self, longest: int = 16_384, least: int = 16) -> None:
        if least < 1:
            raise ValueError(f"least = {least} but must be at least 1.")
        self._life = RemainingLife(longest)
        self._least = least
        self._seen = 0
        self._new: list[int] = []
        self._fresh: int | None = None

    def predict(self, made: int = 0) -> int | None:
        """Predict the length of an answer with `made` tokens; None without data."""
        if not self._seen:
            return None
        if made:
            return self._expect(made)
        if self._fresh is None:  # cached: needed for each arriving request
            self._fresh = self._expect(0)
        return self._fresh

    def observe(self, lengths: Sequence[int]) -> None:
        """Learn from the lengths of completed answers."""
        longest = self._life.longest
        self._new += [min(length, longest) for length in lengths]
        if len(self._new) >= max(self._least, self._seen // 8):
            self._life.observe(np.array(self._new, dtype=np.int64))
            self._seen += len(self._new)
            self._new = []
            self._fresh = None

    def _expect(self, made: int) -> int:
        left = self._life.remaining(np.array([made], dtype=np.int64))
        return made + math.ceil(float(left[0]))


@PREDICTORS.register("history")
def history(longest: int = 16_384, least: int = 16) -> History:
    """Mean length of completed answers, given the tokens made so far."""
    return History(longest, least)
