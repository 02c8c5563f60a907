"""Segments of a stream: groups of requests that can be scheduled independently.

In an optimal schedule a request runs in every step from the last arrival to the end
(`lp.horizon`), which is at most `sum o` steps later. So if the next request arrives
after that, all earlier ones have completed, and the two parts are independent. Each
part may be shifted to begin at step 0, which does not change latencies. Segments have
no long idle times, so the prices by step in `lp` are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.schedule import Schedule
from sortedf.volume import volume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Some requests of an instance, and their own instance from step 0.

    Attributes
    ----------
    ids : int64 array
        Ids in the whole instance.
    begin : int
        Step of their first arrival.
    instance : Instance
    """

    ids: Ints
    begin: int
    instance: Instance


def segments(instance: Instance) -> list[Segment]:
    """Split an instance where all requests must complete before the next arrival.

    In `O(n log n)`. An instance that cannot be split, and begins at step 0, is its own
    only segment.

    No schedule has a TEL below the sum of the segments' least ones, for any split,
    since leaving out requests only frees memory. For these splits, the two are equal.
    """
    order = np.argsort(instance.arrival, kind="stable")
    arrival = instance.arrival[order].tolist()
    first = [0]
    done_by = total = 0
    for k, decode in enumerate(instance.decode[order].tolist()):
        if k and arrival[k] >= done_by:
            first.append(k)
            total = 0
        total += decode
        done_by = arrival[k] + total
    if len(first) == 1 and arrival[:1] in ([], [0]):
        return whole(instance)
    return [_segment(instance, ids) for ids in np.split(order, first[1:])]


def whole(instance: Instance) -> list[Segment]:
    """Return the instance as its only segment."""
    return [Segment(np.arange(instance.num_requests), 0, instance)]


def horizon(instance: Instance) -> int:
    """Approximate last step of a schedule: the last arrival plus all work.

    This is about the largest number of prices by step.
    """
    if not instance.num_requests:  # then the budget may be less than a block
        return 0
    load = exact_sum(volume(instance)) // instance.usable_kv
    return int(instance.arrival.max(initial=0)) + load


def joined(
    instance: Instance, parts: Sequence[Segment], schedules: Sequence[Schedule]
) -> Schedule | None:
    """Join feasible schedules of all segments.

    Returns
    -------
    Schedule or None
        None if one of them still runs when the next segment begins: then feasibility is
        unknown. Joined optimal schedules are always feasible.
    """
    start = np.zeros(instance.num_requests, dtype=np.int64)
    free = 0
    for part, schedule in zip(parts, schedules, strict=True):
        if part.begin < free:
            return None
        free = part.begin + schedule.makespan
        start[part.ids] = schedule.start + part.begin
    return Schedule(instance, start)


def _segment(instance: Instance, ids: Ints) -> Segment:
    own = instance.subset(ids)
    begin = int(own.arrival.min())
    return Segment(ids, begin, own.replace(arrival=own.arrival - begin))
