"""Memory rows that account for the growth of usage between completions.

The linear relaxation may complete a hundredth of a request in each step, so memory can
be full in every step. Real requests complete one at a time, and until the next
completion all running requests grow by a token per step. So memory cannot always be
full.

**The row.** In step `t` let `k` requests run and hold `u_1, ..., u_k` tokens, and let
`N(x, y)` requests complete in the steps `x` to `y`. For all real `theta > 0` and
integers `H >= 0`,

    sum_i [u_i + H min(1, u_i / theta)]
        - (M / theta) sum_{c >= t} (H - (c - t))^+ N(c, c)  <=  M.

*Proof.* If none runs, the left side is at most 0. Otherwise let the next completion be
in step `t + D`. Until then none of the `k` completes, so in step `t + D` they hold
`sum_i u_i + k D <= M`. For `h = 0, 1, ...` let `b_h` be 1 if no request completes in
the steps `t, ..., t + h`, otherwise 0; then `D = sum_h b_h`. Now

    k b_h >= sum_i min(1, u_i / theta) - (M / theta) (1 - b_h),

for `b_h = 1` because each term is at most 1, for `b_h = 0` because the terms sum to at
most `M / theta`. Finally, `1 - b_h <= N(t, t + h)`. Summing over
`h = 0, ..., H - 1` gives the row, since a completion in step `c` is in `N(t, t + h)`
for the `H - (c - t)` largest of these `h`, or for none. QED.

`H = 0` is the memory row. A gap of `L` steps between completions wastes about `L / 2`
tokens of each running request, and the row captures most of it with `H` near `L` and
`theta` near the KV of a request: a share `o / (2 M)` of the budget at any size of the
instance, which matters if the answers `o` are long or the budget is small.

**The bound.** With prices `nu_t >= 0` of the rows, multiplied by `theta`, the bound of
`lp.prices` becomes

    D = sum_i min_{t >= a_i} [t + o_i - a_i - reward(t + o_i)
                              + sum_j nu_{t+j} (theta u_ij + H_{t+j} min(theta, u_ij))]
        - theta M sum_t nu_t,

    reward(c) = M sum_{t <= c} nu_t (H_t - (c - t))^+.

All are integers, times `2^q`; intermediate sums may wrap around 64 bits, and final
values are checked to fit. Tokens are counted without rounding up to blocks, and caps
on a step are left out; both make `D` smaller, so it remains a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prefix import prefix_sums, window_minimum
from lp.prices import MAX_VALUE, bits_after_point
from sortedf.arrays import exact_sum
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

# Not imported from lp.prices: they are compiled into the kernel below, and numba's
# cache does not notice changes in another file.
COARSE = 256
FINE = 16
"""Lengths of the blocks of starts that are skipped together."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthPrices:
    """Fixed-point prices of growth rows, by step.

    Attributes
    ----------
    value : int64 array, shape (T,)
        `nu_t 2^q` for the steps `t = 1, ..., T`, at least 0.
    horizon : int64 array, shape (T,)
        `H_t`, at least 0.
    theta : int
        Tokens held from which a request counts fully in a row, at least 1.
    scale_bits : int
        `q`.
    """

    value: Ints
    horizon: Ints
    theta: int
    scale_bits: int


def growth_prices(
    instance: Instance, prices: Floats, horizon: Ints, theta: int
) -> GrowthPrices:
    """Convert prices of KV to prices of growth rows, with as many bits as possible.

    A row's price is `lambda_t / (theta + H_t)`, so that the cost of a request that
    holds up to `theta` tokens does not change.

    Parameters
    ----------
    instance : Instance
    prices : float64 array, shape (T,)
        `lambda_t` of a token of KV; negative ones become 0.
    horizon : int64 array, shape (T,)
    theta : int

    Raises
    ------
    ValueError
        If a price is not finite, or 64 bits do not allow a single bit of precision.
    """
    if not np.isfinite(prices).all():
        raise ValueError("prices must be finite.")
    value = np.maximum(prices, 0) / (theta + horizon)
    largest = _largest_cost(instance, value, horizon, theta)
    largest += _last_step(instance, horizon)
    bits = bits_after_point(largest)
    rounded = np.rint(value * 2.0**bits).astype(np.int64)
    return GrowthPrices(rounded, horizon, theta, bits)


def growth_bound(instance: Instance, prices: GrowthPrices) -> int:
    """Evaluate `D` exactly and round it up; a lower bound on TEL at any prices.

    Raises
    ------
    ValueError
        If a price, a horizon or `theta` is out of range, or 64 bits are not enough.
    """
    value = least_brackets(instance, prices) - price_of_rows(instance, prices)
    bound: int = -(-value >> prices.scale_bits)
    return bound


def least_brackets(instance: Instance, prices: GrowthPrices) -> int:
    """Sum of the requests' least brackets, times `2^q`; raises as `growth_bound`."""
    _refuse(instance, prices)
    least = np.zeros(instance.num_requests, dtype=np.int64)
    with np.errstate(over="ignore"):  # intermediate sums wrap; see the module
        tables = _Tables.of(prices, instance.usable_kv)
        _search(
            instance.prefill, instance.decode, instance.arrival,
            1 << prices.scale_bits, prices.theta,
            tables.plain, tables.extra, tables.reward,
            int(prices.horizon.max(initial=0)), least,
        )  # fmt: skip
    return exact_sum(least)


def price_of_rows(instance: Instance, prices: GrowthPrices) -> int:
    """`theta M sum_t nu_t`, times `2^q`."""
    total: int = sum(prices.value.tolist())
    return prices.theta * instance.usable_kv * total


def _largest_cost(
    instance: Instance, value: Floats, horizon: Ints, theta: int
) -> float:
    """Upper limit on a request's cost and on a reward, in the unit of the prices.

    Floats suffice: the limits compared with it leave a factor of 2.
    """
    s, o = instance.prefill.astype(np.float64), instance.decode.astype(np.float64)
    volume = float((s * o + o * (o + 1) / 2).max(initial=0))
    dearest = float(value.max(initial=0))
    extra = float((value * horizon).max(initial=0))
    reward = extra * instance.usable_kv * float(horizon.max(initial=0))
    return (theta * dearest + extra) * volume + reward


def _last_step(instance: Instance, horizon: Ints) -> int:
    """Last completion of the starts that are evaluated."""
    last = len(horizon) + int(horizon.max(initial=0))
    last = max(last, int(instance.arrival.max(initial=0)))
    return last + int(instance.decode.max(initial=0)) + 1


def _refuse(instance: Instance, prices: GrowthPrices) -> None:
    value, horizon = prices.value, prices.horizon
    if len(value) != len(horizon):
        raise ValueError("prices and horizons must be equally many.")
    if min(int(value.min(initial=0)), int(horizon.min(initial=0))) < 0:
        raise ValueError("prices and horizons must not be negative.")
    if prices.theta < 1 or prices.scale_bits < 0:
        raise ValueError("theta must be at least 1, scale_bits at least 0.")
    floats = value.astype(np.float64)
    largest = _largest_cost(instance, floats, horizon, prices.theta)
    largest += float(_last_step(instance, horizon)) * 2.0**prices.scale_bits
    if largest >= MAX_VALUE:
        raise ValueError(
            "the prices do not fit the 64-bit arithmetic of this instance."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Prefix sums over steps, and bounds on them that allow blocks to be skipped.

    `plain` has six rows: sums and moments (`sum of u x_u`) of `theta nu`, then those of
    its least value in the `COARSE` and the `FINE` steps from each step on. `extra` has
    the same of `nu H`. Row 0 of `reward` has the reward of a completion in each step,
    rows 1 and 2 its largest value in the `COARSE` and the `FINE` steps from there on.
    """

    plain: Ints
    extra: Ints
    reward: Ints

    @classmethod
    def of(cls, prices: GrowthPrices, budget: int) -> _Tables:
        reward = _rewards(prices, budget)
        return cls(
            _sums(prices.value * prices.theta),
            _sums(prices.value * prices.horizon),
            np.stack([reward, *(-window_minimum(-reward, w) for w in (COARSE, FINE))]),
        )


def _rewards(prices: GrowthPrices, budget: int) -> Ints:
    """`reward(c)` for the steps `c` from 0 on; the last entry is 0.

    While `t <= c < t + H_t`, it has the term `M nu_t (H_t + t) - c M nu_t`.
    """
    reach = int(prices.horizon.max(initial=0))
    step = np.arange(1, len(prices.value) + 1)
    end = step + prices.horizon
    slope = np.zeros(len(step) + reach + 2, dtype=np.int64)
    level = np.zeros(len(slope), dtype=np.int64)
    unit = budget * prices.value
    for table, term in ((slope, unit), (level, unit * end)):
        np.add.at(table, step, term)
        np.subtract.at(table, end, term)
    return np.cumsum(level) - np.arange(len(slope)) * np.cumsum(slope)


def _sums(value: Ints) -> Ints:
    """Tabulate sums and moments of the values, and of their least ones in windows."""
    windows = (value, window_minimum(value, COARSE), window_minimum(value, FINE))
    return np.stack([row for part in windows for row in prefix_sums(part)])


@kernel
def _bracket(
    t: int,
    s: int,
    o: int,
    theta: int,
    one: int,
    row: int,
    plain: Ints,
    extra: Ints,
    reward: Ints,
) -> int:
    """Bracket of a start (`row` 0), or a lower bound on its block (`row` 1 and 2)."""
    steps = plain.shape[1] - 1
    low = min(t, steps)
    middle = min(
        t + min(max(theta - s, 0), o), steps
    )  # it holds up to theta until here
    high = min(t + o, steps)
    a, b = 2 * row, 2 * row + 1
    value: int = (t + o) * one - reward[row, min(t + o, reward.shape[1] - 1)]
    value += (s - t) * (plain[a, high] - plain[a, low]) + plain[b, high] - plain[b, low]
    value += (s - t) * (extra[a, middle] - extra[a, low])
    value += extra[b, middle] - extra[b, low]
    value += theta * (extra[a, high] - extra[a, middle])
    return value


@kernel
def _search(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    one: int,
    theta: int,
    plain: Ints,
    extra: Ints,
    reward: Ints,
    reach: int,
    least: Ints,
) -> None:
    """Fill `least` (modified in place) with each request's least bracket.

    From `reach` steps after the prices on, costs and rewards are 0, so no later start
    is better than the first of them. Every `COARSE`-th start is evaluated first; then
    blocks are skipped in which no start can be better than the best so far.
    """
    top = reward[0].max()
    for i in range(len(prefill)):
        s = prefill[i]
        o = decode[i]
        last = max(arrival[i], plain.shape[1] - 1 + reach)
        best = (last + o) * one
        for t in range(arrival[i], last, COARSE):
            if (t + o) * one - top >= best:
                break
            best = min(best, _bracket(t, s, o, theta, one, 0, plain, extra, reward))
        t = arrival[i]
        while t < last and (t + o) * one - top < best:
            if _bracket(t, s, o, theta, one, 1, plain, extra, reward) >= best:
                t += COARSE
            elif _bracket(t, s, o, theta, one, 2, plain, extra, reward) >= best:
                t += FINE
            else:
                best = min(best, _bracket(t, s, o, theta, one, 0, plain, extra, reward))
                t += 1
        least[i] = best - arrival[i] * one
