"""The smoothed dual function, with a soft minimum over starts.

With a temperature `tau > 0`, the minimum over starts in `D(lambda)` is replaced by
`-tau log sum_t exp(-bracket(t) / tau)`. That is concave and differentiable in the
prices: its gradient is `E[KV held in step t] - M`, where each request starts at random
with probabilities `exp(-bracket / tau)`, normalised. These random starts are an
approximate solution of the linear relaxation: their means order the requests.

Brackets more than `CUT` temperatures above the least are left out. Everything here is
floating point and only guides the ascent; reported bounds are evaluated in `lp.prices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prefix import prefix_sums, window_minimum
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CUT = 18.0
"""Brackets this many temperatures above the least have weight 0; exp(-18) = 1.5e-8."""

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
"""Shares of a request's start for which `alpha_start` is computed."""

WINDOW = 64
"""Length of the blocks of starts that are skipped together."""


@dataclass(slots=True, eq=False)
class Smoothed:
    """One evaluation of the smoothed dual function.

    Attributes
    ----------
    value : float
        Smoothed `D(lambda)`; below the exact one by at most `n tau log(T)`.
    excess : float64 array, shape (T,)
        Its gradient: expected KV held in each step minus the budget.
    mean_start : float64 array, shape (n,)
    likely_start : int64 array, shape (n,)
        The start of least bracket.
    alpha_start : int64 array, shape (k, n)
        For each of the `ALPHAS`, the step by which that share of a request has started.
    """

    value: float
    excess: Floats
    mean_start: Floats
    likely_start: Ints
    alpha_start: Ints


def smoothed_dual(
    instance: Instance, prices: Floats, temperature: float, hint: Ints
) -> Smoothed:
    """Evaluate the smoothed dual function at `prices`, shape (T,).

    `hint` holds a start for each request near its least bracket; it only saves time.
    """
    steps = len(prices)
    block = instance.engine.block_size
    step = np.arange(1, steps + 1)
    sums, moments = prefix_sums(prices)
    low_sums, low_moments = prefix_sums(window_minimum(prices, WINDOW))
    rounding = np.zeros((block, steps + 1))
    if block > 1:
        for r in range(block):
            np.cumsum(prices * (-(step + r) % block), out=rounding[r, 1:])
    count = np.zeros((block, steps + 2))
    offset = np.zeros(steps + 2)
    mean = np.empty(instance.num_requests)
    likely = np.empty(instance.num_requests, dtype=np.int64)
    alpha = np.empty((len(ALPHAS), instance.num_requests), dtype=np.int64)
    total = _soft_minima(
        instance.prefill, instance.decode, instance.arrival, block, temperature,
        sums, moments, rounding, low_sums, low_moments, hint,
        count, offset, mean, likely, np.array(ALPHAS), alpha,
    )  # fmt: skip
    running = np.cumsum(count, axis=1)[:, 1 : steps + 1]
    held = running.sum(axis=0) * step + np.cumsum(offset)[1 : steps + 1]
    if block > 1:
        for r in range(block):
            held += running[r] * (-(step + r) % block)
    budget = instance.usable_kv
    value = total - budget * float(sums[-1])
    return Smoothed(value, held - budget, mean, likely, alpha)


@kernel
def _bracket(
    t: int,
    s: int,
    o: int,
    block: int,
    sums: Floats,
    moments: Floats,
    rounding: Floats,
) -> float:
    high = min(t + o, len(sums) - 1)
    value = t + o + (s - t) * (sums[high] - sums[t]) + moments[high] - moments[t]
    if block > 1:
        r = (s - t) % block
        value += rounding[r, high] - rounding[r, t]
    return float(value)


@kernel
def _soft_minima(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    block: int,
    temperature: float,
    sums: Floats,
    moments: Floats,
    rounding: Floats,
    low_sums: Floats,
    low_moments: Floats,
    hint: Ints,
    count: Floats,
    offset: Floats,
    mean: Floats,
    likely: Ints,
    shares: Floats,
    alpha: Ints,
) -> float:
    """Return the sum of soft minima; fill the other arrays from `count` on in place.

    `count[r, t]` and `offset[t]` get the changes at step `t` of the expected number of
    running requests, by residue of `s - p`, and of their expected `s - p`.
    """
    steps = len(sums) - 1
    starts = np.empty(steps + 2, dtype=np.int64)
    values = np.empty(steps + 2)
    total = 0.0
    for i in range(len(prefill)):
        s = prefill[i]
        o = decode[i]
        first = arrival[i]
        last = max(first, steps)
        if first >= steps:
            total += o
            mean[i] = first
            likely[i] = first
            alpha[:, i] = first
            continue
        best_start = min(max(hint[i], first), last)
        best = _bracket(best_start, s, o, block, sums, moments, rounding)
        found = 0
        t = first
        while t <= last and t + o <= best + CUT * temperature:
            if _bracket(t, s, o, 1, low_sums, low_moments, rounding) > (
                best + CUT * temperature
            ):
                t += WINDOW
                continue
            for k in range(t, min(t + WINDOW, last + 1)):
                value = _bracket(k, s, o, block, sums, moments, rounding)
                if value <= best + CUT * temperature:
                    starts[found] = k
                    values[found] = value
                    found += 1
                    if value < best:
                        best = value
                        best_start = k
            t += WINDOW
        weight_sum = 0.0
        for k in range(found):
            values[k] = np.exp((best - values[k]) / temperature)
            weight_sum += values[k]
        total += best - temperature * np.log(weight_sum) - first
        mean_start = 0.0
        started = 0.0
        share = 0
        for k in range(found):
            t = starts[k]
            w = values[k] / weight_sum
            mean_start += w * t
            started += w
            while share < len(shares) and started >= shares[share]:
                alpha[share, i] = t
                share += 1
            if t < steps:
                end = min(t + o, steps) + 1
                r = (s - t) % block
                count[r, t + 1] += w
                count[r, end] -= w
                offset[t + 1] += w * (s - t)
                offset[end] -= w * (s - t)
        while share < len(shares):
            alpha[share, i] = starts[found - 1]
            share += 1
        mean[i] = mean_start
        likely[i] = best_start
    return total
