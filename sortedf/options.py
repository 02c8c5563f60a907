"""What a caller may ask of any method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sortedf.arrays import MAX_TOKENS, checked_int
from sortedf.bounds.options import BoundOptions
from sortedf.schedule import require_schedule
from sortedf.time_limit import TimeLimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from sortedf.bounds import Bound
    from sortedf.improve.objective import Objective
    from sortedf.schedule import Schedule
    from sortedf.stop import Stop

MAX_JOBS = 1024
"""Threads of a search, at most: a slip of the finger must not ask for millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(TimeLimited):
    """Options of a solve; every method honours those that concern it.

    Beside what is listed it has a time limit, which list rules cannot keep, except
    where they select exact groups, and a function that is told of progress.

    Attributes
    ----------
    backfill : int, optional
        Placement window. None is 0, the papers' rule, for a list rule; a method that
        chooses among several placements tries several windows.
    seed : int
        Seed of whatever is drawn at random. The same seed gives the same schedule,
        unless a time limit cuts the search.
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
    proven : Bound, optional
        A bound that is known beforehand, with the best schedule that was seen on the
        way; a search ends where it is met.
    """

    backfill: int | None = None
    seed: int = 0
    stop: Stop | None = None
    start: Schedule | None = None
    jobs: int = 1
    on_better: Callable[[int, int | None], None] | None = None
    objective: Objective | None = None
    proven: Bound | None = None

    def __post_init__(self) -> None:
        TimeLimited.__post_init__(self)
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

    def knowing(self, proven: Bound) -> Options:
        """Return the same options, with a bound that is known."""
        return replace(self, proven=proven)

    @property
    def lower_bound(self) -> int | None:
        """The value of the bound that is known beforehand."""
        return None if self.proven is None else self.proven.value

    def of_bound(self, *, told: bool = True) -> BoundOptions:
        """Return the options of a bound that a method needs, in the time that is left.

        Parameters
        ----------
        told : bool
            Whether progress is told.
        """
        progress = self.progress if told else None
        return BoundOptions(time_limit_s=self.rest_s, progress=progress)
