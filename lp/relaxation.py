"""The linear relaxation: fractional starts, prices of memory, and the bound."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.column_generation import Generated, generate_columns
from lp.formulation import (
    MAX_NONZEROS,
    Formulation,
    formulate,
    num_nonzeros,
    refuse_too_large,
)
from lp.highs import SOLVERS, Model, Solution, SolverStatus
from lp.horizon import good_schedule, relaxed_horizon
from lp.prices import certify, dual_value, fixed_point
from sortedf.bounds import Bound, register_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.bounds import BoundOptions
    from sortedf.certificate import Certificate
    from sortedf.instance import Instance
    from sortedf.schedule import Schedule

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-9
"""Weight of a start up to which it is left out of the solution."""

SAME = 1e-6
"""Relative difference up to which a program and its prices have the same value."""

LONGER = 1.5
"""Factor of a horizon that was too short."""

MAX_GENERATED = 200_000_000
"""Entries of the largest matrix whose program is solved by column generation.

Only a small part of it is built; at this size a solve takes minutes.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Solution of the linear relaxation, with the bound that its prices prove.

    Attributes
    ----------
    status : SolverStatus
    message : str
        The solver's message.
    objective : float or None
        Objective of the fractional starts. If the status is "optimal" it is the optimum
        over all starts within the horizon, otherwise at least that; None if there are
        no fractional starts.
    request, start : int64 array, shape (m,)
        Starts of positive weight, by request, then step.
    weight : float64 array, shape (m,)
        `x_{i,t}`; the weights of each request sum to 1.
    prices : float64 array, shape (T,)
        `lambda_t` of a token of KV in the steps `t = 1, ..., T`, at least 0.
    certificate : Certificate
        The prices in fixed point, and the bound that they prove for every start.
    runtime_s : float
    """

    status: SolverStatus
    message: str
    objective: float | None
    request: Ints
    start: Ints
    weight: Floats
    prices: Floats
    certificate: Certificate
    runtime_s: float

    @property
    def bound(self) -> int:
        """Lower bound on TEL from the certificate, in exact arithmetic."""
        return self.certificate.bound

    @property
    def mean_start(self) -> Floats | None:
        """`sum_t t x_{i,t}` of each request; None without fractional starts."""
        if self.objective is None:
            return None
        weight = np.bincount(self.request, weights=self.weight)
        return np.bincount(self.request, weights=self.start * self.weight) / weight


def solve_relaxation(
    instance: Instance,
    *,
    horizon: int | None = None,
    solver: str = "columns",
    time_limit_s: float | None = None,
    max_nonzeros: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Relaxation:
    """Solve the time-indexed linear relaxation.

    Minimise `sum (t + o_i - a_i) x_{i,t}` over `x >= 0` with `sum_t x_{i,t} = 1` and,
    in every step, at most `M` KV tokens held. The engine's caps on a step are relaxed
    as well.

    Parameters
    ----------
    instance : Instance
    horizon : int, optional
        Last step in which a request may run. By default `lp.horizon.relaxed_horizon`
        of a good schedule, and longer if that is too short for the
        relaxation's value. The certificate is valid for any horizon.
    solver : str
        "columns" is column generation, by far the fastest; one of `lp.highs.SOLVERS`
        passes the whole matrix to HiGHS.
    time_limit_s : float, optional
        Seconds after which the best bound so far is returned, as after Ctrl-C.
    max_nonzeros : int, optional
        Limit on the entries of the whole matrix; by default `MAX_GENERATED` or
        `MAX_NONZEROS`.
    progress : callable, optional
        Called as `progress(bound so far, 0)` from time to time.

    Returns
    -------
    Relaxation

    Raises
    ------
    TooLargeError
        If the matrix would have more entries; raised before it is allocated.
    SolverError
        If HiGHS fails.

    Examples
    --------
    >>> from sortedf import Instance
    >>> found = solve_relaxation(Instance([5, 6, 1], [3, 2, 1], kv_budget=10))
    >>> round(found.objective, 3), found.bound
    (7.412, 8)
    """
    began = time.perf_counter()
    if solver not in ("columns", *SOLVERS):
        known = ", ".join(("columns", *SOLVERS))
        raise ValueError(f"unknown solver {solver!r}; choose one of: {known}.")
    schedule = good_schedule(instance)
    if max_nonzeros is None:
        max_nonzeros = MAX_GENERATED if solver == "columns" else MAX_NONZEROS
    end = relaxed_horizon(schedule) if horizon is None else horizon
    refuse_too_large(_size(instance, end), max_nonzeros)
    while True:
        left = None
        if time_limit_s is not None:
            left = max(time_limit_s - (time.perf_counter() - began), 0.0)
        found = _solve_within(instance, schedule, end, solver, left, progress)
        relaxation = _relaxation(instance, found, time.perf_counter() - began)
        longer = math.ceil(LONGER * end)
        if (
            horizon is not None
            or not _needs_later_starts(instance, relaxation)
            or _size(instance, longer) > max_nonzeros
        ):
            return relaxation
        end = longer


def _needs_later_starts(instance: Instance, found: Relaxation) -> bool:
    """Whether a start after the horizon is cheaper than all before it.

    Its memory has no price, so that the prices prove less than the program's value.
    """
    if found.status is not SolverStatus.OPTIMAL or found.objective is None:
        return False
    rounded = fixed_point(instance, found.prices)
    _, value = dual_value(instance, rounded)
    proven = math.ldexp(value, -rounded.scale_bits)
    return proven < found.objective - SAME * max(found.objective, 1.0)


def _size(instance: Instance, horizon: int) -> int:
    """Entries of the largest table that is needed for a horizon."""
    # Starts are priced from a table with a row for each residue of a block.
    table = horizon * instance.engine.block_size
    latest = horizon - instance.decode
    return max(num_nonzeros(instance, latest, caps=False), table)


def _solve_within(
    instance: Instance,
    schedule: Schedule,
    horizon: int,
    solver: str,
    time_limit_s: float | None,
    progress: Callable[[int, int], None] | None,
) -> Generated:
    """Solve the program of the starts whose requests end within the horizon."""
    if solver == "columns" and schedule.makespan > horizon:
        solver = "simplex"  # there is no initial schedule within the horizon
    latest = horizon - instance.decode
    formulation = formulate(instance, latest, caps=False)
    if not instance.num_requests:
        return _unsolved(SolverStatus.OPTIMAL, "no requests", 0.0)
    if (latest < instance.arrival).any():
        return _unsolved(SolverStatus.INFEASIBLE, "a request ends after the horizon")
    if solver == "columns":
        return generate_columns(
            formulation, schedule.start, time_limit_s=time_limit_s, progress=progress
        )
    return _solve_whole(formulation, solver, time_limit_s)


@register_bound(
    "lp",
    about="the linear relaxation itself, by column generation",
    cost="seconds to minutes, small instances",
)
def lp_bound(instance: Instance, options: BoundOptions) -> Bound:
    """Bound of the linear relaxation, with its certificate."""
    found = solve_relaxation(
        instance, time_limit_s=options.time_limit_s, progress=options.report
    )
    interrupted = found.status is SolverStatus.INTERRUPTED
    return Bound(found.bound, found.certificate, interrupted=interrupted)


def _unsolved(
    status: SolverStatus, message: str, objective: float | None = None
) -> Generated:
    """Return the result of a program that needs no solver."""
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    solution = Solution(status, message, empty, None, objective, None, False, 0.0)
    return Generated(status, message, solution, none, none, empty)


def _solve_whole(
    formulation: Formulation, solver: str, time_limit_s: float | None
) -> Generated:
    """Solve the program with a column for every start, by one of HiGHS's solvers."""
    request, start = formulation.all_starts()
    model = Model(
        formulation.columns(request, start),
        formulation.row_lower,
        formulation.row_upper,
        solver=solver,
        presolve=False,  # on columns this dense it takes longer than it saves
    )
    solution = model.solve(time_limit_s)
    dual = solution.row_dual
    prices: Floats = np.empty(0) if dual is None else formulation.prices(dual)
    return Generated(
        solution.status, solution.message, solution, request, start, prices
    )


def _relaxation(instance: Instance, found: Generated, runtime_s: float) -> Relaxation:
    x = None if found.solution is None else found.solution.x
    weight = np.zeros(len(found.request)) if x is None else x
    used = np.flatnonzero(weight > NEGLIGIBLE)
    used = used[np.lexsort((found.start[used], found.request[used]))]
    # Prices of a stopped solver can prove less than no prices.
    candidates = (found.prices, np.empty(0))
    certificates = [certify(instance, prices) for prices in candidates]
    return Relaxation(
        status=found.status,
        message=found.message,
        objective=None if found.solution is None else found.solution.objective,
        request=found.request[used],
        start=found.start[used],
        weight=weight[used],
        prices=found.prices,
        certificate=max(certificates, key=lambda certificate: certificate.bound),
        runtime_s=runtime_s,
    )
