"""A search for prices of a step's capacities, step by step, and the order they give.

The bound and its proof are in `sortedf.engine_plan.stepwise_certificate`. It is concave
in the prices. Here they are constant on stretches of steps, and starts are tried at the
begin of each stretch only. The minimum of each request over its starts is smoothed: in
place of the least cost, `-h log sum exp(-cost / h)` for a temperature `h` that falls in
stages, as in `lp.dual`. Then the bound has a gradient, the capacity that requests would
use less the capacity that there is, and is climbed by a quasi-Newton method over the
amounts by which prices fall from stretch to stretch.

At a temperature each request has a distribution of starts. Sorted by the means of these
starts, requests of a mix use all capacities evenly, where every rule by one number per
request first fills the places and then the memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.engine_plan.seconds_certificate import coefficients
from sortedf.engine_plan.stepwise_certificate import (
    MAX_STEPS,
    PRICE_SCALE,
    StepwiseCertificate,
    stepwise_prove,
)
from sortedf.jit import kernel
from sortedf.quasi_newton import minimise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

STRETCHES = 240
"""Largest number of stretches of steps."""

TEMPERATURES = (0.04, 0.01, 0.0025)
"""Stages of smoothing, as shares of the mean completion of the fluid schedule."""

ITERATIONS = 100
"""Steps of the quasi-Newton method in a stage, at most."""

WORK = 2 * 10**8
"""Starts of requests that are evaluated in all stages, about: some seconds."""

FAR = 30.0
"""Starts that cost more temperatures than this above the least are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class StepwisePrices:
    """Prices that were found, and orders of the requests by them.

    Attributes
    ----------
    ends : int64 array, shape (p,)
        Last step of each stretch.
    prices : float64 array, shape (3, p)
        Of a request, a block and a token in a step of each stretch, in steps.
    orders : tuple of int64 arrays, shape (n,)
        Requests by their mean starts, for each temperature.
    """

    ends: Ints
    prices: Floats
    orders: tuple[Ints, ...]

    @property
    def exact(self) -> Ints:
        """Prices as integers over `PRICE_SCALE`, rounded down; shape (3, p)."""
        return np.floor(self.prices * PRICE_SCALE).astype(np.int64)


def stepwise_prices(
    workload: EngineWorkload, deadline: float | None = None
) -> StepwisePrices:
    """Climb the bound of a workload of one request or more.

    Parameters
    ----------
    workload : EngineWorkload
    deadline : float, optional
        Value of `time.perf_counter` at which the search ends. Without it the result is
        reproducible.
    """
    climb = _Climb(workload)
    falls = climb.start()
    orders: list[Ints] = []

    def late() -> bool:
        return deadline is not None and time.perf_counter() > deadline

    for part in TEMPERATURES:
        if orders and late():
            break
        temperature = part * climb.typical
        falls = minimise(
            lambda at, h=temperature: climb.smoothed(at, h),  # type: ignore[misc]
            falls,
            iterations=climb.iterations,
            stop=late,
        )
        orders.append(climb.order(falls, temperature))
    return StepwisePrices(climb.edges[1:], climb.prices(falls), tuple(orders))


def stepwise_certificate(
    workload: EngineWorkload, mix: tuple[int, ...], found: StepwisePrices
) -> StepwiseCertificate:
    """Make prices exact, and prove their bound.

    Parameters
    ----------
    workload : EngineWorkload
    mix : tuple of int
        Weights of the step times.
    found : StepwisePrices
    """
    claim = StepwiseCertificate(
        workload.sha256(),
        0,
        mix,
        coefficients(workload, mix),
        tuple(found.ends.tolist()),
        tuple(map(tuple, found.exact.T.tolist())),
    )
    return replace(claim, bound=stepwise_prove(workload, claim))


class _Climb:
    """The smoothed bound as a function of falls of prices; shape (3 * p,).

    A fall is the amount in steps by which the price of a full step is higher in this
    stretch and all before it.
    """

    def __init__(self, workload: EngineWorkload) -> None:
        rules = workload.rules
        self.num_requests = workload.num_requests
        pairs = np.stack([workload.prefill, workload.decode], axis=1)
        lengths, self.of, self.count = np.unique(
            pairs, axis=0, return_inverse=True, return_counts=True
        )
        self.of = self.of.ravel()
        self.prefill, self.decode = lengths.T.copy()
        caps = [rules.seqs_cap, rules.num_blocks, rules.tokens_cap]
        # A capacity that all requests together cannot fill has no price.
        most = [
            self.num_requests,
            int(((self.prefill + self.decode) // rules.block_size + 1) @ self.count),
            int((self.prefill + 1) @ self.count),
        ]
        self.priced = np.array([c < m for c, m in zip(caps, most, strict=True)])
        self.caps = np.array(
            [min(c, m) for c, m in zip(caps, most, strict=True)], float
        )
        self.size = float(rules.block_size)
        self.chunk = float(min(rules.tokens_cap, most[2]))
        # Tokens beyond `s + j - 1`: the extra slot, and the mean of rounding up.
        self.slack = rules.extra_slots + (rules.block_size - 1) / 2
        self.edges, self.typical = self._stretches()
        each = len(lengths) * len(self.edges) * len(TEMPERATURES)
        self.iterations = min(max(WORK // each, 5), ITERATIONS)

    def _shares(self) -> Floats:
        """Return steps of a full engine that each kind is worth; shape (3, m)."""
        s, o = self.prefill.astype(float), self.decode.astype(float)
        held = (o * (s + self.slack) + o * (o - 1) / 2) / self.size
        return np.asarray(np.stack([o, held, s + o - 1]) / self.caps[:, None])

    def _fluid(self, weight: Floats) -> tuple[Floats, Floats]:
        """Completions of a fluid schedule of areas, and requests left; ascending."""
        area = weight @ self._shares()
        order = np.argsort(area, kind="stable")
        count = self.count[order]
        left = self.num_requests - np.cumsum(count)
        return np.cumsum(area[order] * count), left.astype(np.float64)

    def _stretches(self) -> tuple[Ints, float]:
        """Edges of the stretches, from 0 on, and the mean completion."""
        done, left = self._fluid(np.full(3, 1 / 3))
        mean = float(np.concatenate([[self.num_requests], left[:-1]]) @ np.diff(
            done, prepend=0
        )) / self.num_requests  # fmt: skip
        end = 1.1 * float(self._shares().max(axis=0) @ self.count)
        last = min(int(end) + int(self.decode.max()) + 1, MAX_STEPS)
        even = np.linspace(0, last, STRETCHES // 2 + 1)
        dense = np.quantile(done, np.linspace(0, 1, STRETCHES // 2 + 1))
        edges = np.unique(np.round(np.concatenate([[0], even, dense, [last]])))
        edges = edges[edges <= last].astype(np.int64)
        return edges, max(mean, 1.0)

    def start(self) -> Floats:
        """Falls of the fluid schedule of areas, equal weights for what has a price."""
        weight: Floats = self.priced / np.float64(max(int(self.priced.sum()), 1))
        done, left = self._fluid(weight)
        left = np.concatenate([[self.num_requests], left])
        value = left[np.searchsorted(done, self.edges[:-1], side="right")]
        return np.asarray(np.outer(weight, -np.diff(value, append=0.0)).ravel(), float)

    def prices(self, falls: Floats) -> Floats:
        """Prices of a request, a block and a token in each stretch; shape (3, p)."""
        full = np.cumsum(falls.reshape(3, -1)[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(full / self.caps[:, None])

    def smoothed(self, falls: Floats, temperature: float) -> tuple[float, Floats]:
        """Value and gradient, negative, per request."""
        price = self.prices(falls)
        value, used, _ = self._evaluate(price, temperature)
        length = np.diff(self.edges)
        value -= float(self.caps @ (price @ length))
        slope = (used - self.caps[:, None] * length) / self.caps[:, None]
        gradient = (np.cumsum(slope, axis=1) * self.priced[:, None]).ravel()
        return -value / self.num_requests, -gradient / self.num_requests

    def order(self, falls: Floats, temperature: float) -> Ints:
        """Sort requests by their mean starts."""
        _, _, mean = self._evaluate(self.prices(falls), temperature)
        return np.asarray(np.argsort(mean[self.of], kind="stable"))

    def _evaluate(
        self, price: Floats, temperature: float
    ) -> tuple[float, Floats, Floats]:
        return _smoothed(
            self.prefill, self.decode, self.count, self.edges, price, self.size,
            self.slack, self.chunk, temperature, FAR,
        )  # fmt: skip


@kernel
def _smoothed(
    prefill: Ints, decode: Ints, count: Ints, edges: Ints, price: Floats, size: float,
    slack: float, chunk: float, temperature: float, far: float,
) -> tuple[float, Floats, Floats]:  # fmt: skip
    """Smoothed least costs, the use of capacity in each stretch, and mean starts.

    Notes
    -----
    A request that starts at `t` uses in step `u` one place, `(s + u - t - 1 + slack) /
    size` blocks, and one token; and `s - 1` tokens more in its first step, or, if the
    prompt is longer than `chunk`, the rest of it in the steps before. Sums of prices up
    to a step are linear within a stretch, and those of `u` times the price quadratic;
    so is the use, which is collected as differences and added up at the end.
    """
    p = len(edges) - 1
    cum, cum_u = np.zeros((3, p + 1)), np.zeros(p + 1)
    sum_u = np.zeros(p)
    for k in range(p):
        run = float(edges[k + 1] - edges[k])
        sum_u[k] = run * (edges[k] + edges[k + 1] + 1) / 2.0
        for r in range(3):
            cum[r, k + 1] = cum[r, k] + price[r, k] * run
        cum_u[k + 1] = cum_u[k] + price[1, k] * sum_u[k]
    whole, part = np.zeros((3, p + 1)), np.zeros((3, p))
    whole_u, part_u = np.zeros(p + 1), np.zeros(p)
    extra = np.zeros(p)
    cost, stretch = np.empty(p), np.empty(p, dtype=np.int64)
    mean = np.empty(len(prefill))
    value = 0.0
    for i in range(len(prefill)):
        s, o, n = float(prefill[i]), decode[i], float(count[i])
        chunks = int(np.ceil(s / chunk))
        least, b = np.inf, 0
        for a in range(p):
            t = edges[a]
            if t < chunks - 1:
                cost[a] = np.inf
                continue
            end = min(t + o, edges[p])
            while b < p - 1 and edges[b + 1] < end:
                b += 1
            stretch[a] = b
            into = float(end - edges[b])
            u = into * (edges[b] + end + 1) / 2.0
            base = s - 1.0 + slack - t
            places = cum[0, b] - cum[0, a] + price[0, b] * into
            kv = cum[1, b] - cum[1, a] + price[1, b] * into
            kv_u = cum_u[b] - cum_u[a] + price[1, b] * u
            tokens = cum[2, b] - cum[2, a] + price[2, b] * into
            tokens += (min(s, chunk) - 1.0) * price[2, a]
            c = a
            for x in range(1, chunks):
                while edges[c] > t - x:
                    c -= 1
                tokens += min(s - x * chunk, chunk) * price[2, c]
            cost[a] = t + o + places + (base * kv + kv_u) / size + tokens
            least = min(least, cost[a])
        total = mean_start = 0.0
        for a in range(p):
            if cost[a] < least + far * temperature:
                weight = np.exp((least - cost[a]) / temperature)
                total += weight
                mean_start += weight * edges[a]
        mean[i] = mean_start / total
        value += n * (least - temperature * np.log(total))
        for a in range(p):
            if cost[a] >= least + far * temperature:
                continue
            t, b = edges[a], stretch[a]
            share = n * np.exp((least - cost[a]) / temperature) / total
            end = min(t + o, edges[p])
            into = float(end - edges[b])
            base = s - 1.0 + slack - t
            whole[0, b] += share
            whole[0, a] -= share
            part[0, b] += share * into
            whole[1, b] += share * base / size
            whole[1, a] -= share * base / size
            part[1, b] += share * base * into / size
            whole_u[b] += share / size
            whole_u[a] -= share / size
            part_u[b] += share * into * (edges[b] + end + 1) / 2.0 / size
            extra[a] += share * (min(s, chunk) - 1.0)
            c = a
            for x in range(1, chunks):
                while edges[c] > t - x:
                    c -= 1
                extra[c] += share * min(s - x * chunk, chunk)
    used = np.empty((3, p))
    ahead_0 = ahead_1 = ahead_u = 0.0
    for k in range(p - 1, -1, -1):
        ahead_0 += whole[0, k + 1]
        ahead_1 += whole[1, k + 1]
        ahead_u += whole_u[k + 1]
        run = float(edges[k + 1] - edges[k])
        used[0, k] = ahead_0 * run + part[0, k]
        used[1, k] = ahead_1 * run + part[1, k] + ahead_u * sum_u[k] + part_u[k]
        used[2, k] = used[0, k] + extra[k]
    return value, used, mean
