"""Latest starts of requests in an optimal schedule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.methods import RULES
from sortedf.methods.best_list import WINDOWS
from sortedf.options import Options
from sortedf.placement import place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.schedule import Schedule

    Ints = NDArray[np.int64]

LP_SLACK = 1.2
"""Horizon of the linear relaxation over the makespan of a good schedule."""


def good_schedule(instance: Instance) -> Schedule:
    """Return the best of a few placements by volume: fast, and close to the optimum."""
    order = RULES["svf"](instance, Options())
    schedules = [place(instance, order, backfill=window) for window in WINDOWS]
    return min(schedules, key=lambda schedule: schedule.tel)


def latest_starts(instance: Instance, tel: int) -> Ints:
    """Latest start step of each request in any optimal schedule.

    Parameters
    ----------
    instance : Instance
    tel : int
        TEL of some feasible schedule.

    Returns
    -------
    int64 array, shape (n,)
        No optimal schedule starts a request later.

    Notes
    -----
    Let `p` be the starts of an optimal schedule, `C = p + o` and `A` the last arrival.
    The result is the lesser of two limits.

    *Never idle at the end.* In each step from `A + 1` to the makespan a request runs.
    Otherwise all requests that start at that step or later could start one step
    earlier: they have arrived, they overlap with no other request, and TEL would fall.
    So `C_i <= A + sum_j o_j`.

    *Latency is limited.* `sum_j (C_j - a_j) <= tel` and each `C_j - a_j >= o_j`, so
    `p_i - a_i = (C_i - a_i) - o_i <= tel - sum_j o_j`.

    A third limit is valid but not used: no request could start earlier while the others
    stay, so its wait contains a nearly full step in every interval as long as its
    answer, and the volume of the others limits their number. It excludes a fifth of the
    starts, all of which prices exclude as well (`lp.milp`).
    """
    arrival, decode = instance.arrival, instance.decode
    total = exact_sum(decode)
    busy = int(arrival.max(initial=0)) + total - decode
    latest = np.minimum(busy, arrival + (tel - total))
    return np.asarray(np.maximum(latest, arrival))


def relaxed_horizon(schedule: Schedule) -> int:
    """Default horizon of the linear relaxation, in steps.

    A proven horizon would be many times longer and is not needed: the bound is
    evaluated from the prices over all starts.
    """
    return math.ceil(LP_SLACK * schedule.makespan)
