"""Exact schedules of small instances, by the time-indexed integer program."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lp.column_generation import PricedTime
from lp.formulation import formulate, num_bands, refuse_too_large
from lp.highs import Model, Solution, SolverStatus
from lp.horizon import latest_starts
from lp.relaxation import solve_relaxation
from sortedf.arrays import exact_sum
from sortedf.checker import check
from sortedf.errors import TooLargeError
from sortedf.methods import METHODS, Method, Outcome
from sortedf.methods.best_list import best_list
from sortedf.schedule import Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

SAFETY = 0.5
"""Margin in steps by which a start must exceed the limit to be left out."""

BOUND_ERROR = 1e-6
"""Relative error allowed for HiGHS's bound of an integer program."""

MAX_REQUESTS = 8
"""Requests up to which a comparison of all methods includes this one."""

MAX_NONZEROS = 1_000_000
"""Entries of the largest program passed to HiGHS; slightly above, one round of its cuts
takes 20 s and cannot be interrupted.
"""

TIME_LIMIT_S = 60.0
"""Default time limit in seconds: instances with short answers take one second, six
requests of hundreds of tokens possibly hours.
"""


def milp(instance: Instance, options: Options) -> Outcome:
    """Find an optimal schedule, or the best one until the time limit, with a bound.

    The initial schedule is the best of the list rules. The linear relaxation excludes
    starts that no better schedule can have (`_useful_starts`), and HiGHS solves the
    program over the others, with the engine's caps.

    Unlike the bounds "lp" and "dual", HiGHS's bound is in floating point: it has no
    certificate (see `_proven`).

    Raises
    ------
    TooLargeError
        If more than `MAX_NONZEROS` entries are left. Up to `MAX_REQUESTS` requests, the
        size for which a comparison includes this method, the initial schedule is
        returned instead.
    """
    began = time.perf_counter()
    limit = TIME_LIMIT_S if options.time_limit_s is None else options.time_limit_s

    def left() -> float:
        return max(limit - (time.perf_counter() - began), 0.0)

    best = best_list(instance, options)
    if best.interrupted:
        return best
    tel = best.schedule.tel
    least, prices, stopped = exact_sum(instance.decode), np.zeros(0), False
    if tel > least:
        try:
            relaxation = solve_relaxation(instance, time_limit_s=left())
        except TooLargeError:
            pass  # the horizon alone may leave few enough starts
        else:
            least, prices = max(least, relaxation.bound), relaxation.prices
            stopped = relaxation.status is SolverStatus.INTERRUPTED
    if tel == least or stopped or left() == 0.0:
        return replace(_outcome(best, best.schedule, least), interrupted=stopped)
    try:
        request, start = _useful_starts(instance, best.schedule, prices)
    except TooLargeError:
        if instance.num_requests > MAX_REQUESTS:
            raise
        return _outcome(best, best.schedule, least)
    solution = _solve(instance, best.schedule, request, start, left())
    schedule = best.schedule
    if solution.x is not None:
        schedule = _better(schedule, _schedule(instance, request, start, solution.x))
    outcome = _outcome(best, schedule, max(least, _proven(solution, tel)))
    return replace(outcome, interrupted=solution.interrupted)


METHODS.register("milp")(
    Method(
        milp,
        about="integer program, from the best list",
        guarantee="optimal, if it ends within the time limit",
        cost="exponential",
        max_requests=MAX_REQUESTS,
        by_segment=True,
    )
)


def _useful_starts(
    instance: Instance, incumbent: Schedule, prices: Floats
) -> tuple[Ints, Ints]:
    """List starts that a better schedule could have, and the incumbent's.

    None is later than `lp.horizon.latest_starts`. With the bracket
    `b_i(t) = t + o_i - a_i + sum_j lambda_{t+j} w_ij` any schedule `p` has
    `TEL >= sum_i b_i(p_i) - M sum lambda` (see `lp.prices`), so one in which `i` starts
    at `t` has `TEL >= D(lambda) + b_i(t) - min b_i`. If that is above the incumbent's
    TEL minus 1, no better schedule starts `i` at `t`.
    """
    latest = latest_starts(instance, incumbent.tel)
    latest = np.maximum(latest, incumbent.start)
    windows = sum((latest - instance.arrival + 1).tolist())
    refuse_too_large(windows)
    tables = PricedTime.of(instance, prices)
    brackets = []
    for i, (a, t) in enumerate(zip(instance.arrival, latest, strict=True)):
        scanned = np.arange(a, max(t, len(prices)) + 1)
        brackets.append(tables.brackets(instance, i, scanned))
    least = [bracket.min() for bracket in brackets]
    room = incumbent.tel - SAFETY
    room -= sum(least) - instance.usable_kv * float(prices.sum())
    useful = []
    for i, a in enumerate(instance.arrival):
        found = a + np.flatnonzero(brackets[i] - least[i] <= room)
        found = found[found <= latest[i]]
        useful.append(np.union1d(found, incumbent.start[i]))
    request = np.repeat(np.arange(len(useful)), [len(starts) for starts in useful])
    entries = len(request) + num_bands(instance) * exact_sum(instance.decode[request])
    refuse_too_large(entries, MAX_NONZEROS)
    return request, np.concatenate(useful)


def _solve(
    instance: Instance,
    incumbent: Schedule,
    request: Ints,
    start: Ints,
    time_limit_s: float,
) -> Solution:
    latest = np.zeros(instance.num_requests, dtype=np.int64)
    np.maximum.at(latest, request, start)
    formulation = formulate(instance, latest)
    model = Model(
        formulation.columns(request, start),
        formulation.row_lower,
        formulation.row_upper,
        integer=True,
        presolve=False,  # with long answers it takes minutes and ignores the time limit
    )
    model.start_from((start == incumbent.start[request]).astype(np.float64))
    return model.solve(time_limit_s)


def _schedule(instance: Instance, request: Ints, start: Ints, x: Floats) -> Schedule:
    """Schedule of a point that is integer up to rounding."""
    chosen = np.zeros(instance.num_requests, dtype=np.int64)
    ones = x > 0.5
    chosen[request[ones]] = start[ones]
    return Schedule(instance, chosen)


def _better(incumbent: Schedule, found: Schedule) -> Schedule:
    """Return the found schedule if it is better and feasible, else the incumbent."""
    if found.tel < incumbent.tel and check(incumbent.instance, found).feasible:
        return found
    return incumbent


def _proven(solution: Solution, tel: int) -> int:
    """Round HiGHS's bound to an integer, allowing for its tolerances.

    Reduced costs may be wrong by `FEASIBILITY`. In a solution the variables add up to
    `n`, so the bound of a linear program is off by at most `n FEASIBILITY`, a tenth of
    `BOUND_ERROR` times TEL, as TEL is at least `n`; the rest of the allowance is for
    rounding in cuts and branches. TEL is an integer: after the allowance the bound is
    rounded up. Only starts that no schedule better than `tel` has were excluded, so the
    bound is at most `tel`.
    """
    if solution.dual_bound is None:
        return 0
    return min(tel, math.ceil(solution.dual_bound * (1 - BOUND_ERROR)))


def _outcome(best: Outcome, schedule: Schedule, lower_bound: int) -> Outcome:
    kept = schedule is best.schedule
    return Outcome(
        schedule,
        found_by=best.found_by if kept else "milp",
        backfill=best.backfill if kept else None,
        complete=schedule.tel == lower_bound,
        lower_bound=lower_bound,
    )
