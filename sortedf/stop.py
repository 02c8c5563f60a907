"""Stop rules of a search, which can be combined.

>>> stop = AnyOf(TimeLimit(60), TargetGap(0.01))
>>> stop(SearchState(elapsed_s=3.0, rounds=7, value=101, bound=100))
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sortedf.arrays import MAX_STEP, checked_int, checked_number


@dataclass(frozen=True, slots=True)
class SearchState:
    """Progress of a search.

    Attributes
    ----------
    elapsed_s : float
        Seconds since it began.
    rounds : int
        Completed rounds.
    value : int, optional
        Objective of the best schedule so far, in steps; None if there is none, or none
        that keeps a cap on latency.
    bound : int, optional
        A proven lower bound on it, in steps, if one is known.
    """

    elapsed_s: float = 0.0
    rounds: int = 0
    value: int | None = None
    bound: int | None = None


class Stop:
    """Stop rule: a callable that returns whether a search in a given state ends."""

    def __call__(self, state: SearchState) -> bool:
        """Whether the search is over."""
        raise NotImplementedError

    def seconds_left(self, state: SearchState) -> float:
        """Seconds after which this rule ends the search in any case."""
        return math.inf


class TimeLimit(Stop):
    """Stop after a number of seconds, also in the middle of a round."""

    def __init__(self, seconds: float) -> None:
        if not checked_number("seconds", seconds, "a number, 0 or more") >= 0:
            raise ValueError(f"seconds = {seconds} but must be a number, 0 or more.")
        self._seconds = seconds

    def __call__(self, state: SearchState) -> bool:
        """Whether the time limit has passed."""
        return state.elapsed_s >= self._seconds

    def seconds_left(self, state: SearchState) -> float:
        """Seconds until the time limit passes."""
        return self._seconds - state.elapsed_s


class Rounds(Stop):
    """Stop after a number of rounds: the same seed then gives the same schedule."""

    def __init__(self, rounds: int) -> None:
        self._rounds = checked_int("rounds", rounds, minimum=0, maximum=MAX_STEP)

    def __call__(self, state: SearchState) -> bool:
        """Whether all rounds are done."""
        return state.rounds >= self._rounds


class TargetGap(Stop):
    """Stop when the value is proven to be close to the best possible.

    Parameters
    ----------
    gap : float
        `(value - bound) / bound`, 0 or more; without a bound the rule never ends a
        search.
    """

    def __init__(self, gap: float) -> None:
        if not 0 <= checked_number("gap", gap, "a number, 0 or more") < math.inf:
            raise ValueError(f"gap = {gap} but must be a finite number, 0 or more.")
        self._gap = gap

    def __call__(self, state: SearchState) -> bool:
        """Whether the gap is small enough."""
        if state.value is None or state.bound is None:
            return False
        return state.value - state.bound <= self._gap * state.bound


class AnyOf(Stop):
    """Stop as soon as one of several rules does."""

    def __init__(self, *rules: Stop) -> None:
        self._rules = rules

    def __call__(self, state: SearchState) -> bool:
        """Whether any rule ends the search."""
        return any(rule(state) for rule in self._rules)

    def seconds_left(self, state: SearchState) -> float:
        """Seconds that the strictest rule leaves."""
        return min((rule.seconds_left(state) for rule in self._rules), default=math.inf)
