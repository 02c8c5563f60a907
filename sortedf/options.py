"""What a caller may ask of any method."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sortedf.arrays import MAX_TOKENS, checked_int

if TYPE_CHECKING:
    from collections.abc import Callable


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
        rules cannot: they run to their end.
    seed : int
        Seed of whatever is drawn at random. The same seed gives the same schedule,
        unless a time limit cuts the search.
    progress : callable, optional
        Called as `progress(done, total)` now and then during long work.
    """

    backfill: int | None = None
    time_limit_s: float | None = None
    seed: int = 0
    progress: Callable[[int, int], None] | None = None
    _began: float = field(default_factory=time.perf_counter, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.backfill is not None:
            checked_int("backfill", self.backfill, minimum=0, maximum=MAX_TOKENS)
        checked_int("seed", self.seed, minimum=0, maximum=2**63 - 1)
        limit = self.time_limit_s
        if limit is not None and (isinstance(limit, bool) or not limit >= 0):
            raise ValueError(
                f"time_limit_s = {limit} but must be a number of seconds, 0 or more."
            )

    def out_of_time(self) -> bool:
        """Whether the time limit has passed since these options were made."""
        if self.time_limit_s is None:
            return False
        return time.perf_counter() - self._began >= self.time_limit_s

    def report(self, done: int, total: int) -> None:
        """Tell the caller's progress function, if there is one."""
        if self.progress is not None:
            self.progress(done, total)
