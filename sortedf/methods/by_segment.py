"""A method on each segment of a stream by itself (`sortedf.segments`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.methods.table import Method, Outcome
from sortedf.placement import place
from sortedf.segments import joined
from sortedf.volume import volume

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sortedf.bounds import Bound
    from sortedf.instance import Instance
    from sortedf.options import Options
    from sortedf.segments import Segment


def solve_by_segment(
    instance: Instance,
    parts: Sequence[Segment],
    method: Method,
    options: Options,
    proven: Sequence[Bound] | None,
) -> Outcome | None:
    """Solve each segment within its share of the time, and put them together.

    Parameters
    ----------
    instance : Instance
    parts : sequence of Segment
        All segments of the instance.
    method : Method
    options : Options
        Those for the whole.
    proven : sequence of Bound, optional
        A bound of each segment.

    Returns
    -------
    Outcome or None
        None if a segment's schedule ends after the next one begins, which no optimal
        one does: then the whole has to be solved as one.
    """
    report = _Report(instance, parts, options)
    left = instance.num_requests
    outcomes: list[Outcome] = []
    for k, part in enumerate(parts):
        own = options.with_share_of_time(part.instance.num_requests / left)
        if outcomes and outcomes[-1].interrupted:
            own = own.within(0.0)
        own = replace(
            own,
            proven=None if proven is None else proven[k],
            progress=None,
            on_better=report.better(k),
        )
        found = method.solve(part.instance, own)
        if outcomes and outcomes[-1].interrupted:
            found = replace(found, interrupted=True, complete=False)
        outcomes.append(found)
        left -= part.instance.num_requests
        report.done(k, found.schedule.tel, left)
    schedule = joined(instance, parts, [found.schedule for found in outcomes])
    if schedule is None:
        return None
    windows = {found.backfill for found in outcomes}
    return Outcome(
        schedule,
        found_by=_most_common(parts, outcomes),
        backfill=windows.pop() if len(windows) == 1 else None,
        complete=all(found.complete for found in outcomes),
        lower_bound=_sum_of_bounds(parts, outcomes, proven),
        interrupted=outcomes[-1].interrupted,
    )


class _Report:
    """Tells of progress and of better schedules of the whole."""

    def __init__(
        self, instance: Instance, parts: Sequence[Segment], options: Options
    ) -> None:
        self._options = options
        self._total = instance.num_requests
        self._known: list[int] = []
        if options.on_better is not None:
            latency = place(instance, np.argsort(volume(instance))).latency
            self._known = [exact_sum(latency[part.ids]) for part in parts]

    def better(self, k: int) -> Callable[[int, int | None], None] | None:
        """Return what segment `k` calls with its better schedules."""
        on_better = self._options.on_better
        if on_better is None:
            return None

        def better(value: int, bound: int | None) -> None:
            if value < self._known[k]:
                self._known[k] = value
                on_better(sum(self._known), self._options.lower_bound)

        return better

    def done(self, k: int, tel: int, left: int) -> None:
        """Note that segment `k` is done, and how many requests are left."""
        if self._known:
            self._known[k] = tel
        self._options.report(self._total - left, self._total)


def _most_common(parts: Sequence[Segment], outcomes: Sequence[Outcome]) -> str:
    """Name of what found the schedules of the most requests."""
    count: dict[str, int] = {}
    for part, found in zip(parts, outcomes, strict=True):
        n = part.instance.num_requests
        count[found.found_by] = count.get(found.found_by, 0) + n
    return max(count, key=lambda name: count[name])


def _sum_of_bounds(
    parts: Sequence[Segment],
    outcomes: Sequence[Outcome],
    proven: Sequence[Bound] | None,
) -> int | None:
    """Bound of the whole, if the method has proven one for some segment."""
    if all(found.lower_bound is None for found in outcomes):
        return None
    total = 0
    for k, (part, found) in enumerate(zip(parts, outcomes, strict=True)):
        known = exact_sum(part.instance.decode) if proven is None else proven[k].value
        total += max(known, found.lower_bound or 0)
    return total
