"""Plans for an engine: the best of many orders, improved by moves."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.stepwise_prices import stepwise_prices
from sortedf.engine_plan.plan import Admission, Follower, most_running
from sortedf.engine_plan.starting_orders import by_least_work, by_rule, starting_orders
from sortedf.methods.table import RULES
from sortedf.options import Options
from sortedf.registry import load_plugins

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.bounds.stepwise_prices import StepwisePrices
    from sortedf.engine_plan.plan import EnginePlan
    from sortedf.engine_plan.workload import EngineWorkload

    Ints = NDArray[np.int64]

ALLOWANCES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, np.inf)
"""Allowances that are tried, as shares of the tokens of a step."""

BACKFILLS = (0, 16, 64, 256)

PRICING = 0.4
"""Share of a time limit by which the search for prices ends."""

KEEP = 3
"""Orders that are tried with every allowance and backfill."""

PLACES = (0.35, 0.5, 0.7, 1.0, 1.4)
"""Places that are tried, as shares of the most requests that run without a limit."""

TURNS = 12
"""Rounds of the search for the best allowance and places near the best so far."""

MOVES = 300
"""Moves that are tried without a time limit."""

FAR = 0.03
"""Mean distance of a move, as a share of the order's length."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanFound:
    """A plan and its origin.

    Attributes
    ----------
    plan : EnginePlan
    method : str
    found_by : str
        Name of its initial order.
    moves : int
        Number of moves that improved it.
    complete : bool
        False if the time limit ended the search.
    runtime_s : float
    """

    plan: EnginePlan
    method: str
    found_by: str
    moves: int
    complete: bool
    runtime_s: float


def plan_engine(
    workload: EngineWorkload,
    method: str = "auto",
    *,
    backfill: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    prices: StepwisePrices | None = None,
    on_better: Callable[[float], None] | None = None,
) -> PlanFound:
    """Plan a workload for its engine, for the least total latency in seconds.

    Parameters
    ----------
    workload : EngineWorkload
    method : str
        "auto", "least-work" for the smallest own work in seconds first, or a list
        rule of `sortedf.METHODS`.
    backfill : int, optional
        Largest number of requests that do not fit and are passed over in a step; 0 if
        left out, except that "auto" chooses.
    time_limit : float, optional
        Seconds for "auto". Without it the search makes `MOVES` moves, so that its
        result is reproducible.
    seed : int
        Seed of the moves.
    prices : StepwisePrices, optional
        Prices from which "auto" starts where steps are equally long, as a bound has
        them. If left out it searches for some.
    on_better : callable, optional
        Called with each better total latency.

    Raises
    ------
    ValueError
        If the method is unknown, or an option out of range.

    Examples
    --------
    >>> from sortedf.engine_model import EngineModel
    >>> from sortedf.engine_plan.workload import EngineWorkload
    >>> rules = EngineModel.vllm(kv_budget=20, max_num_seqs=1)
    >>> found = plan_engine(EngineWorkload([3, 3, 3], [3, 2, 1], rules))
    >>> found.plan.order.tolist(), found.plan.total_s
    ([2, 1, 0], 10.0)
    """
    began = time.perf_counter()
    if method not in (known := engine_methods()):
        raise ValueError(
            f"unknown method {method!r} for an engine; choose one of: "
            f"{', '.join(known)}."
        )
    if prices is not None and len(prices.orders[0]) != workload.num_requests:
        raise ValueError(
            f"prices are for {len(prices.orders[0])} requests, and the workload has "
            f"{workload.num_requests}."
        )
    options = Options(backfill=backfill, seed=seed, time_limit_s=time_limit)
    follower = Follower(workload)
    if method == "auto":
        search = _Search(follower, options, prices, on_better)
        search.run(np.random.default_rng(options.seed))
        order, admission, name = search.order, search.admission, search.name
        complete, moves = not search.timed_out, search.moves
    else:
        order, admission, name = (
            _listed(workload, method),
            Admission(options.backfill or 0),
            method,
        )
        complete, moves = True, 0
    return PlanFound(
        follower.plan(order, admission),
        method,
        name,
        moves,
        complete,
        time.perf_counter() - began,
    )


def engine_methods() -> list[str]:
    """Names of the methods for an engine: a search, own work, and list rules."""
    load_plugins()
    return ["auto", "least-work", *RULES]


def _listed(workload: EngineWorkload, method: str) -> Ints:
    """Return the order of a list rule."""
    if method == "least-work":
        return by_least_work(workload)
    return by_rule(workload, method)


class _Search:
    """Best order so far, and its rules of admission."""

    def __init__(
        self,
        follower: Follower,
        options: Options,
        prices: StepwisePrices | None,
        on_better: Callable[[float], None] | None,
    ) -> None:
        self.follower = follower
        self.prices = prices
        backfill = options.backfill
        self.backfills = BACKFILLS if backfill is None else (backfill,)
        self.options = options
        self.on_better = on_better
        self.order: Ints = by_rule(follower.workload, "fcfs")
        self.admission, self.name = Admission(self.backfills[0]), "fcfs"
        self.best = np.inf
        self.moves = 0
        self.timed_out = False

    def run(self, rng: np.random.Generator) -> None:
        """Try orders, tune their admission, and move requests."""
        cap = self._step_tokens()
        orders = starting_orders(self.follower.workload)
        plain = Admission(self.backfills[0])
        ranked = sorted(
            (total, name)
            for name, order in orders.items()
            if not self._late() and (total := self._try(order, plain, name)) < np.inf
        )
        if self.follower.workload.has_equal_steps and not self._late():
            priced = self._by_prices()
            orders |= priced
            ranked += [(self._try(o, plain, name), name) for name, o in priced.items()]
            ranked.sort()
        for _, name in ranked[:KEEP]:
            for part in ALLOWANCES:
                for backfill in self.backfills:
                    if not self._late():
                        self._try(orders[name], Admission(backfill, part * cap), name)
        self._limit_places()
        self._tune()
        self._improve(rng)

    def _by_prices(self) -> dict[str, Ints]:
        """Orders by the prices of a step's capacities, in a part of the time."""
        if self.prices is None:
            rest = self.options.rest_s
            deadline = None if rest is None else time.perf_counter() + PRICING * rest
            self.prices = stepwise_prices(self.follower.workload, deadline)
        orders = enumerate(self.prices.orders, start=1)
        return {f"prices {k}": order for k, order in orders}

    def _step_tokens(self) -> float:
        """Largest number of prompt tokens in a step."""
        w = self.follower.workload
        return float(min(w.rules.tokens_cap, w.prefill.sum() + 1))

    def _late(self) -> bool:
        if self.best < np.inf:
            self.timed_out = self.timed_out or self.options.out_of_time()
        return self.timed_out

    def _try(self, order: Ints, admission: Admission, name: str) -> float:
        total = self.follower.total_s(order, admission)
        if total < self.best:
            self.order, self.admission, self.name = order, admission, name
            self.best = total
            if self.on_better is not None:
                self.on_better(total)
        return total

    def _limit_places(self) -> None:
        """Try fewer running requests than the engine has room for."""
        at = self.admission
        most = most_running(self.follower.plan(self.order, at))
        for part in PLACES:
            if not self._late():
                limited = replace(at, places=max(1.0, part * most))
                self._try(self.order, limited, self.name)

    def _tune(self) -> None:
        """Search for the best allowance and places near the best ones so far."""
        factor = 2.0**0.5
        for _ in range(TURNS):
            began = self.admission
            for name in ("allowance", "places"):
                value = getattr(self.admission, name)
                for near in (value * factor, value / factor):
                    if np.isfinite(value) and not self._late():
                        changed = replace(self.admission, **{name: near})
                        self._try(self.order, changed, self.name)
            if self.admission == began:
                factor = factor**0.5

    def _improve(self, rng: np.random.Generator) -> None:
        """Move requests, alone or in a row, to nearby positions."""
        n = len(self.order)
        if n < 2:
            return
        tried = 0
        while not self._late() and (
            self.options.time_limit_s is not None or tried < MOVES
        ):
            tried += 1
            order = _moved(self.order, rng)
            total = self.follower.total_s(order, self.admission, self.best)
            if total < self.best:
                self.best, self.order = total, order
                self.moves += 1
                if self.on_better is not None:
                    self.on_better(total)


def _moved(order: Ints, rng: np.random.Generator) -> Ints:
    """Take a few requests in a row out of an order and put them in elsewhere."""
    n = len(order)
    size = min(int(rng.geometric(0.4)), n - 1)
    begin = int(rng.integers(0, n - size + 1))
    shift = 1 + int(rng.exponential(max(FAR * n, 1.0)))
    rest = np.delete(order, slice(begin, begin + size))
    to = begin + (shift if rng.random() < 0.5 else -shift)
    return np.insert(rest, min(max(to, 0), n - size), order[begin : begin + size])
