"""The bound in seconds: a search for the best prices of a step's capacities.

Three bounds are tried. Two are for backlogs: one has prices over time, which differ by
the length of a step (`sortedf.bounds.timed_prices`), the other prices of each step, for
steps that are all equally long (`sortedf.bounds.stepwise_prices`). The third, searched
for here, has one set of prices for all steps and times; it is proven in
`sortedf.engine_plan.seconds_certificate`, and allows for arrivals. The constant part
`alpha` of a step is divided among its slots for requests, its blocks and its tokens, by
weights that add up to 1. The best weights are searched for here in floating point;
their bound is then evaluated there, exactly.

For given weights the bound takes `O(n log n)`: works and moments of the requests are
linear in the prices, and are added up once, token by token.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.stepwise_prices import stepwise_certificate, stepwise_prices
from sortedf.bounds.timed_prices import timed_certificate
from sortedf.engine_plan.seconds_certificate import (
    MIX_SCALE,
    UNITS,
    SecondsCertificate,
    SecondsClaim,
    coefficients,
    seconds_prove,
)
from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from sortedf.bounds.stepwise_prices import StepwisePrices
    from sortedf.engine_plan.workload import EngineWorkload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GRID = 4
"""Weights are tried first in multiples of one over this."""

FINEST = 1 / 256
"""Then in smaller and smaller steps, down to this one."""

WEIGHT_SCALE = 2**30
"""Weights become integers over this before they become prices."""


@dataclass(frozen=True, slots=True)
class SecondsBound:
    """A lower bound on the total latency of every schedule of a workload.

    Attributes
    ----------
    total_s : float
        In seconds; never above the certificate's bound.
    certificate : SecondsClaim
    runtime_s : float
    prices : StepwisePrices, optional
        Prices of each step, where all are equally long: a plan can start from them.
    """

    total_s: float
    certificate: SecondsClaim
    runtime_s: float
    prices: StepwisePrices | None = None

    @property
    def method(self) -> str:
        """Name of the bound."""
        return "seconds"


def seconds_bound(workload: EngineWorkload) -> SecondsBound:
    """Prove a lower bound on total latency in seconds.

    It holds for every order and every split of prompts, with evictions and pauses.

    Examples
    --------
    >>> from sortedf.engine_model import EngineModel
    >>> from sortedf.engine_plan.workload import EngineWorkload
    >>> from sortedf.step_time import StepTime
    >>> rules = EngineModel.vllm(kv_budget=100, max_num_seqs=1)
    >>> step_time = StepTime(1.0, prefill_token_s=0.5)
    >>> found = seconds_bound(EngineWorkload([3, 3], [2, 2], rules, (step_time,)))
    >>> round(found.total_s, 9)
    9.0
    """
    began = time.perf_counter()
    best = max(
        (_priced(workload, mix) for mix in _mixes(len(workload.step_times))),
        key=lambda claim: claim.bound,
    )
    claims: list[SecondsClaim] = [best]
    prices = None
    if workload.is_backlog and workload.num_requests:
        claims.append(timed_certificate(workload, best.mix))
        if workload.has_equal_steps:
            prices = stepwise_prices(workload)
            claims.append(stepwise_certificate(workload, best.mix, prices))
    claim = max(claims, key=lambda claim: claim.bound)
    total_s = claim.bound / UNITS
    if total_s * UNITS > claim.bound:  # a float may be rounded up
        total_s = float(np.nextafter(total_s, 0.0))
    return SecondsBound(total_s, claim, time.perf_counter() - began, prices)


def request_work(workload: EngineWorkload) -> tuple[Floats, Floats, float]:
    """Work of each request in seconds, and its shares of what steps can hold.

    Where a step takes the largest of several forms, their mean is taken.

    Returns
    -------
    own : float64 array, shape (n,)
        What its tokens cost whatever else runs.
    shared : float64 array, shape (3, n)
        Steps of a full engine that it is worth, by requests, by blocks and by tokens.
    constant_s : float
        The constant of a step.
    """
    forms = len(workload.step_times)
    mix = tuple(MIX_SCALE // forms for _ in range(forms))
    numbers = np.array(coefficients(workload, mix), dtype=np.float64) / UNITS
    work, _ = _linear_parts(workload, numbers)
    return work[0], work[1:] / _room(workload)[:, None], float(numbers[0])


def _room(workload: EngineWorkload) -> Floats:
    """Return how many requests, blocks and tokens a step can hold."""
    rules = workload.rules
    return np.array([rules.seqs_cap, rules.num_blocks, rules.tokens_cap], dtype=float)


def _linear_parts(workload: EngineWorkload, numbers: Floats) -> tuple[Floats, Floats]:
    rules = workload.rules
    return _linear(
        workload.prefill, workload.decode, numbers, rules.block_size,
        rules.extra_slots, float(rules.tokens_cap), rules.eviction == "recompute",
    )  # fmt: skip


def _mixes(forms: int) -> Iterator[tuple[int, ...]]:
    """Weights of the step times: in quarters."""
    quarter = MIX_SCALE // GRID
    for parts in product(range(GRID + 1), repeat=forms):
        if sum(parts) == GRID:
            yield tuple(part * quarter for part in parts)


def _priced(workload: EngineWorkload, mix: tuple[int, ...]) -> SecondsCertificate:
    """Find the weights of the largest bound for one mean of the step times."""
    coefficient = coefficients(workload, mix)
    numbers = np.array(coefficient, dtype=np.float64) / UNITS
    work, moment = _linear_parts(workload, numbers)
    room = _room(workload)
    arrival = workload.arrival_s
    order = np.argsort(arrival, kind="stable")

    def value(weight: Floats) -> float:
        price = np.concatenate([[1.0], numbers[0] * weight / room])
        own, twice = price @ work, price @ moment
        if not own.all():
            return 0.0
        if workload.is_backlog:
            ascending = np.sort(own)
            busy = float((np.cumsum(ascending) - ascending / 2).sum())
        else:
            busy = _busy(arrival, own, order)
        return busy + float((twice / (2 * own)).sum())

    weight = _best_weights(value)
    price = tuple(
        coefficient[0] * int(part * WEIGHT_SCALE) // (WEIGHT_SCALE * int(limit))
        for part, limit in zip(weight.tolist(), room.tolist(), strict=True)
    )
    claim = SecondsCertificate(workload.sha256(), 0, mix, coefficient, price)
    return replace(claim, bound=seconds_prove(workload, claim))


def _best_weights(value: Callable[[Floats], float]) -> Floats:
    """Weights of requests, blocks and tokens by a grid and then by smaller steps."""
    grid = [
        np.array(parts, dtype=float) / GRID
        for parts in product(range(GRID + 1), repeat=3)
        if sum(parts) == GRID
    ]
    best, weight = max(((value(w), k) for k, w in enumerate(grid)))
    at, step = grid[weight], 0.5 / GRID
    while step >= FINEST:
        moved = False
        for give, take in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
            near = at.copy()
            shift = min(step, near[give])
            near[give] -= shift
            near[take] += shift
            if shift > 0 and (found := value(near)) > best:
                best, at, moved = found, near, True
        if not moved:
            step /= 2
    return at


@kernel
def _linear(
    prefill: Ints, decode: Ints, coefficient: Floats,
    size: int, extra: int, cap: float, evicts: bool,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Work, and twice the sum of work times distance, of each request.

    Rows are the parts without a price, and those for a price of 1 of a request, of a
    block and of a token; shape (4, n).
    """
    n = len(prefill)
    alpha, beta, gamma, delta = coefficient
    last = min(beta, gamma)
    g = last if evicts else gamma
    work, moment = np.zeros((4, n)), np.zeros((4, n))
    for i in range(n):
        s, o = prefill[i], decode[i]
        behind = 0.0  # twice the work after the token
        for j in range(o, 1, -1):
            own = g + delta * (s + j - 1)
            held = float(-(-(s + j - 1 + extra) // size))
            far = alpha + own + behind
            work[0, i] += own
            work[1, i] += 1.0
            work[2, i] += held
            work[3, i] += 1.0
            moment[0, i] += own * far
            moment[1, i] += far
            moment[2, i] += held * far
            moment[3, i] += far
            behind += 2.0 * (alpha + own)
        held = float(-(-(s + extra) // size))
        end = last + delta * s
        far = alpha + beta * (s - 1) + end + behind
        x = max(s - cap, 0.0)
        q = np.floor(x / cap)
        gaps = cap * q * (q + 1.0) / 2.0 + (x - q * cap) * (q + 1.0)
        cut = 2.0 * alpha * gaps + end * x
        work[0, i] += beta * (s - 1) + end
        work[1, i] += 1.0
        work[2, i] += held
        work[3, i] += s
        moment[0, i] += (beta * (s - 1) + end) * far + beta * cut - end * beta * x
        moment[1, i] += far - beta * x
        moment[2, i] += held * (far - beta * x)
        moment[3, i] += s * far + cut - beta * x
    return work, moment


@kernel
def _busy(arrival: Floats, work: Floats, order: Ints) -> float:
    """Sum of mean busy times less arrivals on one machine of speed 1.

    It serves the smallest work that has arrived; `order` is by arrival.
    """
    rest = work.copy()
    waiting = [(0.0, 0)]
    heappop(waiting)
    clock, total, k, n = 0.0, 0.0, 0, len(order)
    while k < n or len(waiting) > 0:
        if len(waiting) == 0:
            clock = max(clock, arrival[order[k]])
        while k < n and arrival[order[k]] <= clock:
            heappush(waiting, (work[order[k]], order[k]))
            total -= arrival[order[k]]
            k += 1
        i = waiting[0][1]
        done = clock + rest[i]
        until = done if k == n else min(done, arrival[order[k]])
        total += (until - clock) * (until + clock) / (2.0 * work[i])
        rest[i] -= until - clock
        clock = until
        if until == done:
            heappop(waiting)
    return total
