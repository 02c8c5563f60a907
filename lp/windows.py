"""The dual bound where each request may start in a window of steps only.

For prices `lambda >= 0`, every schedule with `first_i <= p_i <= last_i` has, as in
`lp.prices`,

    TEL >= D = sum_i min_{first_i <= t <= last_i} b_i(t) - M sum_t lambda_t,
    b_i(t) = t + o_i - a_i + sum_j lambda_{t+j} (s_i + j).

Two rules cut a window at its ends.

*By price.* A schedule in which `i` starts at `t` has `TEL >= D + b_i(t) - min b_i`. If
that is above `tel - 1`, no schedule of the windows that is better than `tel` has it.

*By what must run.* Whenever `i` starts, it runs in the steps `last_i + 1` to
`first_i + o_i`, and in step `t` of these it holds at least `s_i + t - last_i` tokens.
Another request cannot start where this leaves it too little in any of its steps.

Tokens are counted without rounding up to blocks, and caps on a step are left out; both
only allow more. Everything that a bound rests on is in integers, times `2^q`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prefix import prefix_sums
from lp.prices import Prices, fixed_point
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CUT = 18.0
"""Brackets this many temperatures above the least have weight 0 in soft minima."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """First and last start of each request, int64 arrays of shape (n,)."""

    first: Ints
    last: Ints

    def split(self, i: int, step: int) -> tuple[Windows, Windows]:
        """Windows in which `i` starts at `step` or sooner, and later."""
        first, last = self.first.copy(), self.last.copy()
        first[i], last[i] = step + 1, step
        return Windows(self.first, last), Windows(first, self.last)


def windows_below(instance: Instance, tel: int) -> Windows:
    """Windows that hold every schedule with a TEL of at most `tel`.

    Each request adds at least its `o` to TEL, so none waits longer than
    `tel - sum o`.
    """
    slack = tel - sum(instance.decode.tolist())
    return Windows(instance.arrival, instance.arrival + slack)


def windowed_bound(
    instance: Instance, windows: Windows, prices: Prices, tel: int
) -> tuple[int, Windows]:
    """Evaluate `D 2^q` exactly, and cut the windows by price.

    Parameters
    ----------
    prices : Prices
        As `windowed_prices` rounds them, so that no bracket leaves 64 bits.
    tel : int
        TEL of a known schedule.

    Returns
    -------
    value : int
        `D 2^q` for the windows given.
    windows : Windows
        They still hold every schedule of these windows that is better than `tel`; a
        first start after the last one says that there is none.
    """
    brackets = _brackets(instance, windows, prices)
    value = sum(int(bracket.min()) for bracket in brackets)
    value -= instance.usable_kv * prices.total()
    room = ((tel - 1) << prices.scale_bits) - value
    first, last = windows.first.copy(), windows.last.copy()
    for i, bracket in enumerate(brackets):
        good = np.flatnonzero(bracket - bracket.min() <= room)
        if not len(good):
            first[i] = last[i] + 1
            break
        last[i] = first[i] + good[-1]
        first[i] += good[0]
    return value, Windows(first, last)


def windowed_prices(instance: Instance, prices: Floats, tel: int) -> Prices:
    """Round prices so that brackets fit 64 bits in all windows below a known TEL.

    Raises
    ------
    ValueError
        If they do not fit whatever the rounding.
    """
    rounded = fixed_point(
        instance, prices
    )  # costs fit, and starts until the last price
    latest = tel + int((instance.arrival + instance.decode).max(initial=0))
    excess = max(rounded.scale_bits + latest.bit_length() - 61, 0)
    if excess > rounded.scale_bits:
        raise ValueError("starts are too late for exact arithmetic.")
    return Prices(rounded.value >> excess, rounded.scale_bits - excess)


def _brackets(instance: Instance, windows: Windows, prices: Prices) -> list[Ints]:
    """`b_i(t) 2^q` for all `t` of each window."""
    steps = len(prices.value)
    sums, moments = prefix_sums(prices.value)
    brackets = []
    for s, o, a, first, last in zip(
        instance.prefill, instance.decode, instance.arrival,
        windows.first, windows.last, strict=True,
    ):  # fmt: skip
        t = np.arange(first, last + 1)
        low, high = np.minimum(t, steps), np.minimum(t + o, steps)
        cost = (s - t) * (sums[high] - sums[low]) + moments[high] - moments[low]
        brackets.append(((t + o - a) << prices.scale_bits) + cost)
    return brackets


def tighten(instance: Instance, windows: Windows) -> Windows | None:
    """Cut the windows by what must run; None if nothing fits them."""
    first, last = windows.first.copy(), windows.last.copy()
    if (first > last).any():
        return None
    end = int((last + instance.decode).max(initial=0))
    fits = _tighten(
        instance.prefill, instance.decode, instance.usable_kv, end, first, last
    )
    return Windows(first, last) if fits else None


@kernel
def _tighten(
    prefill: Ints, decode: Ints, budget: int, end: int, first: Ints, last: Ints
) -> bool:
    """Cut `first` and `last` (modified in place) until nothing changes."""
    held = np.zeros(end + 1, dtype=np.int64)
    changed = True
    while changed:
        changed = False
        held[:] = 0
        for i in range(len(prefill)):
            for t in range(last[i] + 1, first[i] + decode[i] + 1):
                held[t] += prefill[i] + t - last[i]
        for i in range(len(prefill)):
            s = prefill[i]
            o = decode[i]
            must_first = last[i] + 1
            must_last = first[i] + o
            before = last[i]
            for end_of_window in range(2):
                while first[i] <= last[i]:
                    p = first[i] if end_of_window == 0 else last[i]
                    fits = True
                    for t in range(p + 1, p + o + 1):
                        used = held[t] + s + t - p
                        if must_first <= t <= must_last:
                            used -= s + t - before
                        if used > budget:
                            fits = False
                            break
                    if fits:
                        break
                    changed = True
                    if end_of_window == 0:
                        first[i] += 1
                    else:
                        last[i] -= 1
            if first[i] > last[i]:
                return False
    return True


@kernel
def soft_minima(
    prefill: Ints,
    decode: Ints,
    first: Ints,
    last: Ints,
    prices: Floats,
    temperature: float,
    held: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    """Sum of soft minima of `t + o + price` over the windows; see `lp.smoothing`.

    Fills `held`, the expected tokens held in each step, and mean and variance of the
    random starts (all modified in place).
    """
    steps = len(prices)
    sums = np.zeros(steps + 1)
    moments = np.zeros(steps + 1)
    for t in range(1, steps + 1):
        sums[t] = sums[t - 1] + prices[t - 1]
        moments[t] = moments[t - 1] + prices[t - 1] * t
    count = np.zeros(steps + 2)
    offset = np.zeros(steps + 2)
    bracket = np.empty(steps + 1)
    total = 0.0
    for i in range(len(prefill)):
        s = prefill[i]
        o = decode[i]
        low = min(first[i], steps)
        high = min(last[i], steps)
        least = np.inf
        for t in range(low, high + 1):
            if t + o > least + CUT * temperature:
                high = t - 1
                break
            e = min(t + o, steps)
            value = (s - t) * (sums[e] - sums[t]) + moments[e] - moments[t]
            bracket[t] = t + o + value
            least = min(least, bracket[t])
        weight = 0.0
        for t in range(low, high + 1):
            excess = (bracket[t] - least) / temperature
            bracket[t] = np.exp(-excess) if excess < CUT else 0.0
            weight += bracket[t]
        total += least - temperature * np.log(weight)
        mean[i] = 0.0
        variance[i] = 0.0
        for t in range(low, high + 1):
            w = bracket[t] / weight
            mean[i] += w * t
            variance[i] += w * t * t
            e = min(t + o, steps) + 1
            count[t + 1] += w
            count[e] -= w
            offset[t + 1] += w * (s - t)
            offset[e] -= w * (s - t)
        variance[i] -= mean[i] * mean[i]
    running = 0.0
    base = 0.0
    for t in range(1, steps + 1):
        running += count[t]
        base += offset[t]
        held[t - 1] = running * t + base
    return total
