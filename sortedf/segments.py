"""Segments of a stream: requests that have nothing to do with those before and after.

In an optimal schedule something runs in every step from the last arrival to the end
(`lp.horizon`): by then `sum o` steps have passed at most. So if the next request comes
later than that, all before it are done, and the two parts are two problems. Each may
also begin at step 0: latencies do not change. What is never idle for long is short, so
that prices by step, which everything in `lp` has, are few.
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
    """Some requests of an instance, and their own instance from step 0 on.

    Attributes
    ----------
    ids : int64 array
        Their ids in the whole instance.
    begin : int
        Step of their first arrival.
    instance : Instance
    """

    ids: Ints
    begin: int
    instance: Instance


def segments(instance: Instance) -> list[Segment]:
    """Cut an instance where all must be done before the next request comes.

    In `O(n log n)`. An instance that cannot be cut, and begins at step 0, is its own
    only segment.

    No schedule has a TEL below the sum of the segments' least ones, wherever one cuts:
    leaving requests out only makes room. Where this cuts, the two are equal.
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
    """About the last step of a schedule: the last arrival, and all the work after it.

    That is how many prices by step there are at most.
    """
    if not instance.num_requests:  # then the budget may be less than a block
        return 0
    load = exact_sum(volume(instance)) // instance.usable_kv
    return int(instance.arrival.max(initial=0)) + load


def joined(
    instance: Instance, parts: Sequence[Segment], schedules: Sequence[Schedule]
) -> Schedule | None:
    """Put feasible schedules of all segments together.

    Returns
    -------
    Schedule or None
        None if one of them is still running when the next segment begins: then whether
        the whole is feasible is open. No optimal one is.
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
