"""Lower bounds on objectives other than TEL, in closed form and exact integers.

A cap on latency only excludes schedules, so bounds without it hold with it.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import TYPE_CHECKING

from sortedf.volume import volume, volume_moment

if TYPE_CHECKING:
    from sortedf.improve.objective import Objective
    from sortedf.instance import Instance


def objective_bound(instance: Instance, objective: Objective) -> int:
    """Prove a lower bound on weighted TEL or on the makespan."""
    if objective.makespan:
        return makespan_bound(instance)
    return weighted_bound(instance, objective.weights(instance).tolist())


def makespan_bound(instance: Instance) -> int:
    """Lower bound on the makespan: the step before which no schedule ends.

    All volume of requests that arrive at `a` or later is used after `a`, and at most
    `M` of it in a step; and every request needs its `o` steps.
    """
    arrival: list[int] = instance.arrival.tolist()
    volumes: list[int] = volume(instance).tolist()
    ends = zip(arrival, instance.decode.tolist(), strict=True)
    least = max((a + o for a, o in ends), default=0)
    rest = 0
    for i in sorted(range(len(arrival)), key=arrival.__getitem__, reverse=True):
        rest += volumes[i]
        least = max(least, arrival[i] - (-rest // instance.usable_kv))
    return least


def weighted_bound(instance: Instance, weight: list[int]) -> int:
    """Fluid bound on the weighted sum of latencies.

    As `sortedf.bounds.fluid`, which has the proof: with `w_i B_i` in place of `B_i` the
    same swap shows that an optimal flow serves the largest `w / v` that has arrived.
    """
    arrival, decode = instance.arrival.tolist(), instance.decode.tolist()
    volumes, moments = volume(instance).tolist(), volume_moment(instance)
    total = Fraction(0)
    for i, busy in _busy_times(arrival, volumes, weight, instance.usable_kv):
        own = decode[i] - arrival[i] - Fraction(int(moments[i]), 2 * volumes[i])
        total += weight[i] * (busy + own)
    pairs = zip(weight, decode, strict=True)
    least = sum(w * o for w, o in pairs)
    return max(-(-total.numerator // total.denominator), int(least))


def _busy_times(
    arrival: list[int], volumes: list[int], weight: list[int], budget: int
) -> list[tuple[int, Fraction]]:
    """Mean busy time of each request in the fluid schedule, in steps.

    Clock ticks are `1 / M` steps, so a request of volume `v` takes `v` ticks.
    """
    order = sorted(range(len(arrival)), key=arrival.__getitem__)
    rest, twice = list(volumes), [0] * len(order)
    waiting: list[tuple[Fraction, int]] = []
    clock = k = 0
    while k < len(order) or waiting:
        if not waiting:
            clock = max(clock, arrival[order[k]] * budget)
        while k < len(order) and arrival[order[k]] * budget <= clock:
            i = order[k]
            heapq.heappush(waiting, (Fraction(-weight[i], volumes[i]), i))
            k += 1
        i = waiting[0][1]
        until = clock + rest[i]
        if k < len(order):
            until = min(until, arrival[order[k]] * budget)
        twice[i] += until * until - clock * clock
        rest[i] -= until - clock
        clock = until
        if not rest[i]:
            heapq.heappop(waiting)
    return [(i, Fraction(twice[i], 2 * budget * volumes[i])) for i in range(len(order))]
