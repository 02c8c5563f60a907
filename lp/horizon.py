"""How late a request can start in an optimal schedule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_STEP, exact_sum
from sortedf.methods import RULES
from sortedf.methods.auto import WINDOWS
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
    """Find the best of a few placements by volume: quick, and close to the optimum."""
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
    Let `p` be the starts of an optimal schedule, `C = p + o`, `A` the last arrival and
    `w_ij` what request `i` holds in its `j`-th step. The least of three limits counts.

    *Never idle at the end.* In each step from `A + 1` to the makespan something runs.
    Otherwise all that starts at that step or later could start one step sooner: it has
    arrived, it meets nobody new, and TEL would fall. So `C_i <= A + sum_j o_j`.

    *Latency is limited.* `sum_j (C_j - a_j) <= tel` and each `C_j - a_j >= o_j`, so
    `p_i - a_i = (C_i - a_i) - o_i <= tel - sum_j o_j`.

    *No room sooner*, without caps on a step. Moving request `i` alone to a start
    `u < p_i` would lower TEL, so it breaks the budget: for some `j <= o_i` the others
    hold more than `M - w_ij >= M - peak_i` in step `u + j`. Take `u = a_i + k o_i` for
    `k = 0, ..., K - 1` with `K = ceil((p_i - a_i) / o_i)`: there is such a step in
    each of `K` disjoint windows of `o_i` steps. Another request `j` runs in `o_j`
    consecutive steps, which meet at most `m_j = ceil((o_j - 1) / o_i) + 1` windows, and
    holds at most `peak_j`. Summed over those steps,
    `K (M - peak_i + 1) <= sum_{j != i} m_j peak_j`. That limits `K`, and
    `p_i <= a_i + K o_i`.
    """
    arrival, decode = instance.arrival, instance.decode
    total = exact_sum(decode)
    latest = np.minimum(
        int(arrival.max(initial=0)) + total - decode, arrival + (tel - total)
    )
    engine = instance.engine
    if engine.max_num_seqs is None and engine.max_batched_tokens is None:
        latest = np.minimum(latest, _no_room_sooner(instance))
    return np.maximum(latest, arrival)


def _no_room_sooner(instance: Instance) -> Ints:
    """Evaluate the third limit, request by request: `O(n^2)`."""
    decode, peak = instance.decode, instance.peak
    limit = np.empty(instance.num_requests, dtype=np.int64)
    for i in range(instance.num_requests):
        windows = -(-(decode - 1) // decode[i]) + 1
        held = exact_sum(windows * peak) - int(windows[i] * peak[i])
        full = held // (instance.usable_kv - int(peak[i]) + 1)
        limit[i] = min(int(instance.arrival[i]) + full * int(decode[i]), 2 * MAX_STEP)
    return limit


def relaxed_horizon(schedule: Schedule) -> int:
    """Last step that the linear relaxation looks at by default.

    A proven horizon would be many times longer, and is not needed: the bound is
    evaluated from the prices for every start, however late.
    """
    return math.ceil(LP_SLACK * schedule.makespan)
