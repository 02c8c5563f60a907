"""Prices of KV memory over time, and the lower bound that they prove.

For prices `lambda_t >= 0` of a token of KV in step `t` (0 after the last one), every
feasible schedule satisfies, with `w_ij` the tokens that request `i` holds in its j-th
step and `p_i` its start,

    TEL  =  sum_i (p_i + o_i - a_i)
        >=  sum_i (p_i + o_i - a_i) + sum_t lambda_t (KV held in step t - M)
         =  sum_i [p_i + o_i - a_i + sum_j lambda_{p_i + j} w_ij] - M sum_t lambda_t
        >=  D(lambda) = sum_i min_{t >= a_i} [t + o_i - a_i + sum_j lambda_{t+j} w_ij]
                        - M sum_t lambda_t.

So `D(lambda)` is a lower bound on TEL for any prices, without a horizon: starts are
scanned to the end of the prices, after which a bracket only grows. The largest
`D` is the optimum of the time-indexed linear relaxation.

Prices are stored as integers `lambda_t 2^q`, and all arithmetic here is in exact
integers. Intermediate sums may wrap around 64 bits; each bracket is checked to fit, so
its final value is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prefix import prefix_sums, window_minimum
from sortedf.arrays import exact_sum
from sortedf.certificate import Certificate, instance_hash
from sortedf.jit import kernel
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

COARSE = 256
FINE = 16
"""Lengths of the blocks of starts that are skipped together."""

MAX_VALUE = 2**62
"""Limit on a bracket for safe 64-bit arithmetic."""


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Fixed-point prices of a token of KV, by step.

    Attributes
    ----------
    value : int64 array, shape (T,)
        `lambda_t 2^q` for the steps `t = 1, ..., T`, at least 0.
    scale_bits : int
        `q`.
    """

    value: Ints
    scale_bits: int

    def total(self) -> int:
        """Sum of all prices, times `2^q`."""
        return sum(self.value.tolist())


def fixed_point(instance: Instance, prices: ArrayLike) -> Prices:
    """Round prices to integers with as many bits as the arithmetic allows.

    Parameters
    ----------
    instance : Instance
    prices : array_like of float, shape (T,)
        `lambda_t` for `t = 1, ..., T`; negative ones become 0.

    Raises
    ------
    ValueError
        If a price is not finite, or 64 bits do not allow a single bit of precision.
    """
    floats = np.asarray(prices, dtype=np.float64)
    if floats.ndim != 1 or not np.isfinite(floats).all():
        raise ValueError("prices must be a one-dimensional array of finite numbers.")
    floats = np.maximum(floats, 0)
    used = np.flatnonzero(floats)
    floats = floats[: used[-1] + 1 if len(used) else 0]
    largest = _largest_bracket(instance, len(floats), float(floats.max(initial=0)))
    bits = bits_after_point(largest)
    return Prices(np.rint(floats * 2.0**bits).astype(np.int64), bits)


def bits_after_point(largest: float) -> int:
    """Most bits after the point with which a bracket of this size is below `MAX_VALUE`.

    Raises
    ------
    ValueError
        If 64 bits do not allow a single one.
    """
    bits = 61 - int(largest).bit_length()
    if bits < 0:
        raise ValueError(f"the prices are too large for exact arithmetic: {largest:g}.")
    return bits


def best_starts(instance: Instance, prices: Prices) -> tuple[Ints, int]:
    """Solve the inner problems: the cheapest start of each request at given prices.

    Returns
    -------
    start : int64 array, shape (n,)
        A minimiser `t >= a_i` of each bracket, the first one.
    total : int
        The sum of the brackets' minima, times `2^q`.
    """
    steps = len(prices.value)
    _refuse_overflow(instance, prices)
    block = instance.engine.block_size
    start = np.empty(instance.num_requests, dtype=np.int64)
    least = np.empty(instance.num_requests, dtype=np.int64)
    with np.errstate(over="ignore"):  # intermediate sums wrap; see the module
        tables = _Tables.of(prices.value, block)
        _search(
            instance.prefill, instance.decode, instance.arrival,
            1 << prices.scale_bits, block, steps,
            tables.sums, tables.moments, tables.rounding,
            tables.coarse_sums, tables.coarse_moments,
            tables.fine_sums, tables.fine_moments,
            start, least,
        )  # fmt: skip
    return start, exact_sum(least)


def dual_value(instance: Instance, prices: Prices) -> tuple[Ints, int]:
    """Evaluate `D(lambda)` exactly; return the minimising starts and `D 2^q`."""
    start, total = best_starts(instance, prices)
    return start, total - instance.usable_kv * prices.total()


def bound_of(prices: Prices, value: int) -> int:
    """Round `D` up to the next integer, since TEL is an integer."""
    return -(-value >> prices.scale_bits)


def certify(instance: Instance, prices: ArrayLike) -> Certificate:
    """Prove a lower bound on TEL by prices from any source.

    Parameters
    ----------
    instance : Instance
    prices : array_like of float, shape (T,)
        `lambda_t` for `t = 1, ..., T`; negative ones become 0.

    Returns
    -------
    Certificate
        Its `bound` is `D` of the rounded prices, in exact integers, rounded up.
    """
    rounded = fixed_point(instance, prices)
    _, value = dual_value(instance, rounded)
    bound = bound_of(rounded, value)
    return Certificate(
        instance_hash(instance), bound, rounded.scale_bits, rounded.value
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Prefix sums over steps `0, ..., T` of prices, and of window minima.

    `sums[t]` is the sum of the prices up to step `t` and `moments[t]` that of
    `u lambda_u`, so a request's cost is a difference of two entries. `rounding[r, t]`
    sums `lambda_u ((-(u + r)) mod B)`: the cost of rounding up to blocks for a request
    with `s - p = r mod B`. The coarse and fine ones are sums and moments of the least
    price in the window that begins in each step.
    """

    sums: Ints
    moments: Ints
    rounding: Ints
    coarse_sums: Ints
    coarse_moments: Ints
    fine_sums: Ints
    fine_moments: Ints

    @classmethod
    def of(cls, value: Ints, block: int) -> _Tables:
        step = np.arange(1, len(value) + 1)
        rounding = np.zeros((block, len(value) + 1), dtype=np.int64)
        if block > 1:
            for r in range(block):
                np.cumsum(value * (-(step + r) % block), out=rounding[r, 1:])
        return cls(
            *prefix_sums(value),
            rounding,
            *prefix_sums(window_minimum(value, COARSE)),
            *prefix_sums(window_minimum(value, FINE)),
        )


def _largest_bracket(instance: Instance, steps: int, largest_price: float) -> float:
    """Upper limit on brackets and arrivals, in steps."""
    if instance.num_requests == 0:
        return 1.0
    last = max(steps, int(instance.arrival.max())) + int(instance.decode.max())
    return last + largest_price * float(volume(instance).max()) + 1


def _refuse_overflow(instance: Instance, prices: Prices) -> None:
    if len(prices.value) and int(prices.value.min()) < 0:
        raise ValueError("prices must not be negative.")
    if not instance.num_requests:
        return
    last = max(len(prices.value), int(instance.arrival.max()))
    largest = (last + int(instance.decode.max())) << prices.scale_bits
    dearest = int(prices.value.max(initial=0))
    largest += dearest * int(volume(instance).max())
    if largest >= MAX_VALUE:
        raise ValueError(
            f"prices of {len(prices.value)} steps with {prices.scale_bits} bits after "
            "the point do not fit the 64-bit arithmetic of this instance."
        )


@kernel
def _cost(t: int, s: int, o: int, steps: int, sums: Ints, moments: Ints) -> int:
    """Price of the KV of a request that starts at `t`, without rounding to blocks."""
    low = min(t, steps)
    high = min(t + o, steps)
    price: int = (s - t) * (sums[high] - sums[low]) + moments[high] - moments[low]
    return price


@kernel
def _search(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    one: int,
    block: int,
    steps: int,
    sums: Ints,
    moments: Ints,
    rounding: Ints,
    coarse_sums: Ints,
    coarse_moments: Ints,
    fine_sums: Ints,
    fine_moments: Ints,
    start: Ints,
    least: Ints,
) -> None:
    """Fill `start` and `least` (modified in place) with each request's best start.

    A bracket is at least its `t + o`, and at least its value with each price replaced
    by the least one of its window; blocks of starts that cannot be better than the best
    so far are skipped. Every `COARSE`-th start is evaluated first.
    """
    for i in range(len(prefill)):
        s = prefill[i]
        o = decode[i]
        first = arrival[i]
        last = max(first, steps)
        best = (last + o) * one  # after the last price KV costs nothing
        best_start = last
        for fast in range(2):
            t = first
            while t < last and (t + o) * one < best:
                if fast == 1:
                    bound = _cost(t, s, o, steps, coarse_sums, coarse_moments)
                    if (t + o) * one + bound >= best:
                        t += COARSE
                        continue
                    bound = _cost(t, s, o, steps, fine_sums, fine_moments)
                    if (t + o) * one + bound >= best:
                        t += FINE
                        continue
                value = (t + o) * one + _cost(t, s, o, steps, sums, moments)
                if block > 1:
                    r = (s - t) % block
                    value += rounding[r, min(t + o, steps)] - rounding[r, t]
                if value < best or (value == best and t < best_start):
                    best = value
                    best_start = t
                t += COARSE if fast == 0 else 1
        start[i] = best_start
        least[i] = best - arrival[i] * one
