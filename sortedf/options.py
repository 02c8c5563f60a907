"""What a caller may ask of any method."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sortedf.arrays import MAX_TOKENS, checked_int, checked_number
from sortedf.schedule import require_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from sortedf.bounds import Bound
    from sortedf.improve.objective import Objective
    from sortedf.schedule import Schedule
    from sortedf.stop import Stop

MAX_JOBS = 1024
"""Threads of a search, at most: a slip of the finger must not ask for millions."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a solve; every method honours those that concern it.

    Attributes
    ----------
    backfill : int, optional
        Placement window. None is 0, the papers' rule, for a list rule; a method that
        chooses among several placements tries several windows.
    time_limit_s : float, optional
        Seconds after which a method that can stop early gives its best so far. List
        rules cannot, except where they select exact groups: they run to their end.
    seed : int
        Seed of whatever is drawn at random. The same seed gives the same schedule,
        unless a time limit cuts the search.
    progress : callable, optional
        Called as `progress(done, total)` now and then during long work.
    stop : Stop, optional
        When a search ends, beside the time limit.
    start : Schedule, optional
        What a search starts from, and is never worse than.
    jobs : int
        Threads of a search.
    on_better : callable, optional
        Called as `on_better(tel, lower bound or None)` when a search finds better.
    objective : Objective, optional
        What is minimised, TEL if left out; then `lower_bound` and `on_better` are about
        that. Only methods that say so (`Method.any_objective`) can minimise others.
    target : int, optional
        Lower bound at which an iterative bound is good enough and ends.
    proven : Bound, optional
        A bound that is known beforehand, with the best schedule that was seen on the
        way; a search ends where it is met.
    shared : dict
        What bounds of one call leave for each other, so that none does it again.
    """

    backfill: int | None = None
    time_limit_s: float | None = None
    seed: int = 0
    progress: Callable[[int, int], None] | None = None
    stop: Stop | None = None
    start: Schedule | None = None
    jobs: int = 1
    on_better: Callable[[int, int | None], None] | None = None
    objective: Objective | None = None
    target: int | None = None
    proven: Bound | None = None
    shared: dict[str, Any] = field(default_factory=dict, repr=False)
    _began: float = field(default_factory=time.perf_counter, repr=False)

    def __post_init__(self) -> None:
        for name, least, most in (
            ("backfill", 0, MAX_TOKENS),
            ("seed", 0, 2**63 - 1),
            ("jobs", 1, MAX_JOBS),
        ):
            value = getattr(self, name)
            if value is not None or name != "backfill":
                value = checked_int(name, value, minimum=least, maximum=most)
                object.__setattr__(self, name, value)
        if self.start is not None:
            require_schedule(self.start)
        if self.time_limit_s is not None:
            rule = "a number of seconds, 0 or more"
            limit = checked_number("time_limit_s", self.time_limit_s, rule)
            if not limit >= 0:
                raise ValueError(f"time_limit_s = {limit} but must be {rule}.")

    def out_of_time(self) -> bool:
        """Whether the time limit has passed since these options were made."""
        return self.seconds_left() == 0

    def seconds_left(self) -> float:
        """Seconds until the time limit has passed, infinite without one."""
        if self.time_limit_s is None:
            return math.inf
        left = self.time_limit_s - (time.perf_counter() - self._began)
        return max(left, 0.0)

    def with_share_of_time(self, share: float) -> Options:
        """Return the same options, with a share of the time that is left."""
        if self.time_limit_s is None:
            return self
        limit_s = share * self.seconds_left()
        return replace(self, time_limit_s=limit_s, _began=time.perf_counter())

    def knowing(self, proven: Bound) -> Options:
        """Return the same options, with a bound that is known."""
        return replace(self, proven=proven)

    @property
    def lower_bound(self) -> int | None:
        """The value of the bound that is known beforehand."""
        return None if self.proven is None else self.proven.value

    def reached(self, lower_bound: int) -> bool:
        """Whether a lower bound is good enough."""
        return self.target is not None and lower_bound >= self.target

    def report(self, done: int, total: int) -> None:
        """Tell the caller's progress function, if there is one."""
        if self.progress is not None:
            self.progress(done, total)
