"""Time limit and progress function, common to all options."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from sortedf.arrays import checked_number

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimited:
    """Base class of the options of a solve and of a bound.

    Attributes
    ----------
    time_limit_s : float, optional
        Seconds, counted from the creation of these options, after which a computation
        that can stop early returns its best result so far.
    progress : callable, optional
        Called as `progress(done, total)` now and then during long work.
    """

    time_limit_s: float | None = None
    progress: Callable[[int, int], None] | None = None
    _began: float = field(default_factory=time.perf_counter, repr=False)

    def __post_init__(self) -> None:
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

    @property
    def rest_s(self) -> float | None:
        """Remaining time as the limit of a computation that starts now, or None."""
        return None if self.time_limit_s is None else self.seconds_left()

    def within(self, seconds: float | None) -> Self:
        """Return the same options with another time limit, from now on."""
        return replace(self, time_limit_s=seconds, _began=time.perf_counter())

    def with_share_of_time(self, share: float) -> Self:
        """Return the same options with a share of the remaining time."""
        if self.time_limit_s is None:
            return self
        return self.within(share * self.seconds_left())

    def report(self, done: int, total: int) -> None:
        """Call the caller's progress function, if there is one."""
        if self.progress is not None:
            self.progress(done, total)
