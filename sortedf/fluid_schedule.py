"""The fluid schedule: divisible work on one machine, by Smith's rule.

Requests are work `v_i` that may be split and interrupted, on a machine that does
`speed` units of it in a step. The schedule always serves the largest `w / v` that has
arrived, which minimises the weighted sum of mean busy times (`sortedf.bounds.fluid`).
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Key = int | Fraction


def fluid_pieces(
    arrival: Sequence[int],
    volumes: Sequence[int],
    speed: int,
    weight: Sequence[int] | None = None,
) -> Iterator[tuple[int, int, int]]:
    """Yield (request, begin, end) of each piece of work, in order of time.

    Times are exact, in ticks of `1 / speed` steps: a request of volume `v` takes `v`.

    Parameters
    ----------
    arrival : sequence of int, shape (n,)
        In steps.
    volumes : sequence of int, shape (n,)
        At least 1.
    speed : int
    weight : sequence of int, shape (n,), optional
        `w`, at least 0; all 1 if left out. Ties go to the earlier request.
    """
    keys: Sequence[Key] = volumes
    if weight is not None:
        keys = [Fraction(-w, v) for w, v in zip(weight, volumes, strict=True)]
    order = sorted(range(len(arrival)), key=arrival.__getitem__)
    rest = list(volumes)
    waiting: list[tuple[Key, int]] = []
    clock = k = 0
    while k < len(order) or waiting:
        if not waiting:
            clock = max(clock, arrival[order[k]] * speed)
        while k < len(order) and arrival[order[k]] * speed <= clock:
            heapq.heappush(waiting, (keys[order[k]], order[k]))
            k += 1
        i = waiting[0][1]
        until = clock + rest[i]
        if k < len(order):
            until = min(until, arrival[order[k]] * speed)
        yield i, clock, until
        rest[i] -= until - clock
        clock = until
        if not rest[i]:
            heapq.heappop(waiting)


def mean_busy_times(
    arrival: Sequence[int],
    volumes: Sequence[int],
    speed: int,
    weight: Sequence[int] | None = None,
) -> list[int]:
    """`2 speed v_i` times the mean busy time of each request, in steps.

    A piece from `x` to `y` adds `y^2 - x^2`, twice the integral of the clock.
    """
    busy = [0] * len(volumes)
    for i, begin, end in fluid_pieces(arrival, volumes, speed, weight):
        busy[i] += end * end - begin * begin
    return busy
