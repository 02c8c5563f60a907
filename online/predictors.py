"""Predictors of answer lengths that learn from completed requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from online.answer_lengths import AnswerLengths
from online.named import check_options
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Predictor(Protocol):
    """Predicts answer lengths in one run, in the simulator or in an engine."""

    def predict(self, output_tokens: int = 0) -> int | None:
        """Predict the length of an answer from its tokens so far; None without data."""
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
    >>> history.predict(), history.predict(output_tokens=15)
    (20, 30)
    """
    predictor = PREDICTORS.find(name)
    check_options("predictor", name, predictor, options)
    return predictor(**options)


@PREDICTORS.register("history")
def history(longest: int = 16_384, least: int = 16) -> AnswerLengths:
    """Mean length of completed answers, given the tokens made so far."""
    return AnswerLengths(longest, least)
