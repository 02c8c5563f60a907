"""Lower bounds on objectives other than TEL, in closed form and exact integers.

A cap on latency only excludes schedules, so bounds without it hold with it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sortedf.fluid_schedule import mean_busy_times
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
    budget = instance.usable_kv
    for i, busy in enumerate(mean_busy_times(arrival, volumes, budget, weight)):
        middle = Fraction(busy - moments[i] * budget, 2 * volumes[i] * budget)
        total += weight[i] * (middle + decode[i] - arrival[i])
    pairs = zip(weight, decode, strict=True)
    least = sum(w * o for w, o in pairs)
    return max(-(-total.numerator // total.denominator), int(least))
