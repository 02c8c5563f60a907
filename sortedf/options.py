"""Options of a solve."""

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
"""Threads of a search at most, so that a typing error cannot start millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(TimeLimited):
    """Options of a solve; a method ignores those that it has no use for.

    Beside the attributes listed it has the time limit and the progress function of
    `TimeLimited`. List rules ignore the time limit unless they select exact groups.

    Attributes
    ----------
    backfill : int, optional
        Placement window. None is 0, the papers' rule, for a list rule; a method that
        chooses among several placements tries several windows.
    seed : int
        Seed of all random draws. The same seed gives the same schedule,
        unless a time limit cuts the search.
    stop : Stop, optional
        When a search ends, beside the time limit.
    start : Schedule, optional
        Initial schedule of a search; the result is never worse.
    jobs : int
        Threads of a search.
    on_better : callable, optional
        Called as `on_better(tel, lower bound or None)` at each improved schedule.
    objective : Objective, optional
        Objective to minimise, TEL if left out; `lower_bound` and `on_better` refer to
        it. Other objectives need a method with `Method.any_objective`.
    proven : Bound, optional
        A lower bound computed beforehand, with the best schedule found while computing
        it; a search ends when it reaches the bound.
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
        """Return the same options with a known lower bound."""
        return replace(self, proven=proven)

    @property
    def lower_bound(self) -> int | None:
        """Value of the lower bound computed beforehand; None without one."""
        return None if self.proven is None else self.proven.value

    def of_bound(self, *, report_progress: bool = True) -> BoundOptions:
        """Return options for a bound that a method computes in the remaining time.

        Parameters
        ----------
        report_progress : bool
            Whether the bound calls the progress function.
        """
        progress = self.progress if report_progress else None
        return BoundOptions(time_limit_s=self.rest_s, progress=progress)
