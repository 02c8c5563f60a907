"""The dual bound when the starts of each request are limited to a window of steps.

For prices `lambda >= 0`, every schedule with `first_i <= p_i <= last_i` has, as in
`lp.prices`,

    TEL >= D = sum_i min_{first_i <= t <= last_i} b_i(t) - M sum_t lambda_t,
    b_i(t) = t + o_i - a_i + sum_j lambda_{t+j} (s_i + j).

Two rules shorten a window at its ends.

*By price.* A schedule in which `i` starts at `t` has `TEL >= D + b_i(t) - min b_i`. If
that is above `tel - 1`, no schedule in the windows that is better than `tel` has it.

*By mandatory parts.* Whenever `i` starts, it runs in the steps `last_i + 1` to
`first_i + o_i`, and in step `t` of these it holds at least `s_i + t - last_i` tokens.
Another request cannot start at a step from which this leaves it too little memory.

Tokens are counted without rounding up to blocks, and caps on a step are left out; both
only relax the problem. All arithmetic of a bound is in integers, times `2^q`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prefix import prefix_sums
from lp.prices import Prices, fixed_point
from sortedf.arrays import exact_sum
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MAX_ROOM = 2**61
"""Limit on the differences of brackets in a window."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """First and last start of each request, int64 arrays of shape (n,)."""

    first: Ints
    last: Ints

    def split(self, i: int, step: int) -> tuple[Windows, Windows]:
        """Windows in which `i` starts at `step` or before it, and after it."""
        first, last = self.first.copy(), self.last.copy()
        first[i], last[i] = step + 1, step
        return Windows(self.first, last), Windows(first, self.last)


def windows_below(instance: Instance, tel: int) -> Windows:
    """Windows that contain every schedule with a TEL of at most `tel`.

    Each request adds at least its `o` to TEL, so none waits longer than
    `tel - sum o`.
    """
    slack = tel - sum(instance.decode.tolist())
    return Windows(instance.arrival, instance.arrival + slack)


def windowed_bound(
    instance: Instance, windows: Windows, prices: Prices, tel: int
) -> tuple[int, Windows]:
    """Evaluate `D 2^q` exactly, and shorten the windows by price.

    Parameters
    ----------
    prices : Prices
        Rounded by `windowed_prices`, so that brackets fit 64 bits.
    tel : int
        TEL of a known schedule.

    Returns
    -------
    value : int
        `D 2^q` for the windows given.
    windows : Windows
        They contain every schedule of the given windows that is better than `tel`; a
        first start after the last one means that there is none.
    """
    sums, moments = prefix_sums(prices.value)
    one = 1 << prices.scale_bits
    tables = (instance.prefill, instance.decode, instance.arrival, one, sums, moments)
    first, last = windows.first.copy(), windows.last.copy()
    least = np.empty(instance.num_requests, dtype=np.int64)
    with np.errstate(over="ignore"):  # intermediate sums may wrap; see lp.prices
        _least(*tables, first, last, least)
        value = exact_sum(least) - instance.usable_kv * prices.total()
        room = ((tel - 1) << prices.scale_bits) - value
        _cut(*tables, least, max(min(room, MAX_ROOM), -MAX_ROOM), first, last)
    return value, Windows(first, last)


def windowed_prices(instance: Instance, prices: Floats, tel: int) -> Prices:
    """Round prices so that brackets fit 64 bits in all windows below a known TEL.

    Raises
    ------
    ValueError
        If they do not fit at any precision.
    """
    rounded = fixed_point(instance, prices)  # costs and starts up to the last price fit
    latest = tel + int((instance.arrival + instance.decode).max(initial=0))
    excess = max(rounded.scale_bits + latest.bit_length() - 61, 0)
    if excess > rounded.scale_bits:
        raise ValueError("starts are too late for exact arithmetic.")
    return Prices(rounded.value >> excess, rounded.scale_bits - excess)


@kernel
def _bracket(
    s: int, o: int, a: int, t: int, one: int, sums: Ints, moments: Ints
) -> int:
    """`b_i(t) 2^q`."""
    steps = len(sums) - 1
    low = min(t, steps)
    high = min(t + o, steps)
    cost: int = (s - t) * (sums[high] - sums[low]) + moments[high] - moments[low]
    return (t + o - a) * one + cost


@kernel
def _least(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    one: int,
    sums: Ints,
    moments: Ints,
    first: Ints,
    last: Ints,
    least: Ints,
) -> None:
    """Fill `least` (modified in place) with the least bracket of each window."""
    for i in range(len(prefill)):
        s, o, a = prefill[i], decode[i], arrival[i]
        best = _bracket(s, o, a, last[i], one, sums, moments)
        for t in range(first[i], last[i]):
            best = min(best, _bracket(s, o, a, t, one, sums, moments))
        least[i] = best


@kernel
def _cut(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    one: int,
    sums: Ints,
    moments: Ints,
    least: Ints,
    room: int,
    first: Ints,
    last: Ints,
) -> None:
    """Shorten windows (modified in place) whose end brackets exceed the least + `room`.

    A window becomes empty if `room` is negative.
    """
    for i in range(len(prefill)):
        s, o, a = prefill[i], decode[i], arrival[i]
        limit = least[i] + room
        while first[i] <= last[i]:
            if _bracket(s, o, a, first[i], one, sums, moments) <= limit:
                break
            first[i] += 1
        while first[i] <= last[i]:
            if _bracket(s, o, a, last[i], one, sums, moments) <= limit:
                break
            last[i] -= 1


def tighten(instance: Instance, windows: Windows) -> Windows | None:
    """Shorten the windows by mandatory parts; None if no schedule fits them."""
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
    """Shorten `first` and `last` (modified in place) until nothing changes."""
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
