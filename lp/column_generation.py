"""The linear relaxation by column generation.

The linear program over a few starts of each request gives prices of the memory rows;
with them the reduced cost of any start takes `O(1)`, and starts of negative reduced
cost get columns, until there are none. The optimum is that of the program with all
starts, and every round gives a bound that is valid for starts within the horizon.
Nearly all of the time is spent in HiGHS, on a few dozen starts of each request instead
of thousands.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.highs import Model, Solution, SolverStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lp.formulation import Formulation
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

GAP = 1e-7
"""Relative gap between program and bound at which the rounds end."""

PER_ROUND = 30
"""Columns added for a request in one round, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class PricedTime:
    """Prefix sums over the steps `0, ..., T`, from which a start is priced in `O(1)`.

    Attributes
    ----------
    sums, moments : float64 array, shape (T + 1,)
        Sums of `lambda_u` and of `u lambda_u` for `u` up to each step.
    rounding : float64 array, shape (B, T + 1)
        `rounding[r]` sums `lambda_u ((-(u + r)) mod B)`: the cost of rounding up to
        blocks for a request with `s - p = r mod B`.
    """

    sums: Floats
    moments: Floats
    rounding: Floats

    @classmethod
    def of(cls, instance: Instance, prices: Floats) -> PricedTime:
        """Tables of the prices of steps `1, ..., T`."""
        block = instance.engine.block_size
        step = np.arange(1, len(prices) + 1)
        residue = np.arange(block)[:, None]
        return cls(
            _prefix_sums(prices),
            _prefix_sums(step * prices),
            _prefix_sums(prices * (-(step + residue) % block)),
        )

    def brackets(self, instance: Instance, i: int, start: Ints) -> Floats:
        """`t + o_i - a_i + sum_j lambda_{t+j} w_{i,j}` for some starts `t`."""
        s, o = int(instance.prefill[i]), int(instance.decode[i])
        low = np.minimum(start, len(self.sums) - 1)
        high = np.minimum(start + o, len(self.sums) - 1)
        cost = start + o - instance.arrival[i]
        cost = cost + (s - start) * (self.sums[high] - self.sums[low])
        cost = cost + (self.moments[high] - self.moments[low])
        residue = (s - start) % len(self.rounding)
        cost = cost + (self.rounding[residue, high] - self.rounding[residue, low])
        return np.asarray(cost, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """Result of column generation.

    Attributes
    ----------
    status : SolverStatus
        OPTIMAL only if no start has a negative reduced cost.
    message : str
        HiGHS's message for the last program.
    solution : Solution or None
        Solution of the last program solved to optimality.
    request, start : int64 array, shape (m,)
        The starts with columns in it, in the order of `solution.x`.
    prices : float64 array, shape (T,)
        Prices with the best bound of all rounds; empty before the first.
    """

    status: SolverStatus
    message: str
    solution: Solution | None
    request: Ints
    start: Ints
    prices: Floats


def generate_columns(
    formulation: Formulation,
    incumbent: Ints,
    *,
    time_limit_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Generated:
    """Solve the linear relaxation of a formulation without caps.

    Parameters
    ----------
    formulation : Formulation
    incumbent : int64 array, shape (n,)
        Starts of a feasible schedule, none later than the formulation's latest.
    time_limit_s : float, optional
    progress : callable, optional
        Called as `progress(bound so far, 0)` after each round.

    Notes
    -----
    Ctrl-C ends the rounds; the result of the last complete round is returned.
    """
    began = time.perf_counter()
    rounds = _Rounds(formulation, incumbent)
    try:
        while rounds.status is None:
            left = None
            if time_limit_s is not None:
                left = time_limit_s - (time.perf_counter() - began)
            rounds.next(left)
            if progress is not None and np.isfinite(rounds.bound):
                progress(math.ceil(rounds.bound * (1 - GAP)), 0)
    except KeyboardInterrupt:
        rounds.status = SolverStatus.INTERRUPTED
    return rounds.outcome()


class _Rounds:
    """The program, the starts that have columns, and the best prices so far."""

    def __init__(self, formulation: Formulation, incumbent: Ints) -> None:
        self.status: SolverStatus | None = None
        self.bound = -np.inf
        self._formulation = formulation
        self._request, self._start = _around(formulation, incumbent)
        self._message = ""
        self._solution: Solution | None = None
        self._prices = np.zeros(0)
        self._model = Model(
            formulation.columns(self._request, self._start),
            formulation.row_lower,
            formulation.row_upper,
            solver="primal-simplex",  # added columns leave the basis primal feasible
            presolve=False,
        )

    def next(self, time_limit_s: float | None) -> None:
        """Solve the program and add columns, or set the final status."""
        solution = self._model.solve(time_limit_s)
        self._message = solution.message
        if solution.status is not SolverStatus.OPTIMAL:
            self.status = solution.status
            return
        assert solution.objective is not None
        assert solution.row_dual is not None
        self._solution = solution
        prices = self._formulation.prices(solution.row_dual)
        request, start, bound = _price(self._formulation, prices, solution.row_dual)
        if bound > self.bound:
            self._prices, self.bound = prices, bound
        # Within the solver's tolerance an existing column can still price negatively.
        new = ~np.isin(
            self._keys(request, start), self._keys(self._request, self._start)
        )
        request, start = request[new], start[new]
        if not len(start) or self.bound >= (1 - GAP) * solution.objective:
            self.status = SolverStatus.OPTIMAL
        elif solution.interrupted:
            self.status = SolverStatus.INTERRUPTED
        else:
            self._model.add(self._formulation.columns(request, start))
            self._request = np.concatenate([self._request, request])
            self._start = np.concatenate([self._start, start])

    def _keys(self, request: Ints, start: Ints) -> Ints:
        return request * (int(self._formulation.step[-1]) + 1) + start

    def outcome(self) -> Generated:
        """Return the result of the last complete round."""
        x = None if self._solution is None else self._solution.x
        m = 0 if x is None else len(x)
        return Generated(
            status=self.status or SolverStatus.UNKNOWN,
            message=self._message,
            solution=self._solution,
            request=self._request[:m],
            start=self._start[:m],
            prices=self._prices,
        )


def _prefix_sums(values: Floats) -> Floats:
    """Sum along the last axis up to each entry, with a 0 in front."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def _around(formulation: Formulation, incumbent: Ints) -> tuple[Ints, Ints]:
    """Return starts 0, 1, 2, 4, ... steps from the incumbent's, and the arrivals.

    The incumbent's starts are among them, so the first program is feasible.
    """
    power = 2 ** np.arange(64 - 2)
    away = np.concatenate([-power, [0], power])
    starts = []
    for earliest, latest, p in zip(
        formulation.instance.arrival, formulation.latest, incumbent, strict=True
    ):
        near = p + away[np.abs(away) <= latest]
        near = np.append(near[(near >= earliest) & (near <= latest)], earliest)
        starts.append(np.unique(near))
    return _joined(starts)


def _price(
    formulation: Formulation, prices: Floats, row_dual: Floats
) -> tuple[Ints, Ints, float]:
    """Find starts of negative reduced cost, and the bound that the prices prove.

    Both consider starts within the horizon. Only local minima over time are added:
    their neighbours would gain little more.
    """
    instance = formulation.instance
    tables = PricedTime.of(instance, prices)
    total = 0.0
    starts = []
    for i in range(instance.num_requests):
        start = np.arange(instance.arrival[i], formulation.latest[i] + 1)
        bracket = tables.brackets(instance, i, start)
        total += bracket.min()
        walled = np.concatenate([[np.inf], bracket, [np.inf]])
        pays = bracket < row_dual[i] - GAP * abs(row_dual[i])
        pays &= (bracket <= walled[:-2]) & (bracket <= walled[2:])
        found = np.flatnonzero(pays)
        found = found[np.argsort(bracket[found], kind="stable")[:PER_ROUND]]
        starts.append(np.sort(start[found]))
    return *_joined(starts), total - instance.usable_kv * float(prices.sum())


def _joined(starts: list[Ints]) -> tuple[Ints, Ints]:
    """Write the starts of each request as (request, start)."""
    request = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
    return request, np.concatenate([np.empty(0, dtype=np.int64), *starts])
