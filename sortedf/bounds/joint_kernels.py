"""Jitted loops of the bound by joint values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FAR = 12.0
"""Exponent beyond which a window's share is 0."""


@kernel
def window_costs(
    prefill: int,
    decode: int,
    arrival: int,
    cut: Ints,
    token: Floats,
    flat: Floats,
    grid: Ints,
    least: Floats,
    start: Ints,
) -> None:
    """Find the least cost of a run within stretches `a, ..., a + d`, and its start.

    Tokens are counted without rounding to blocks.

    Parameters
    ----------
    prefill, decode, arrival : int
        Own tokens, answer and arrival.
    cut : int64 array, shape (K + 1,)
        Stretch `k` has the steps `cut[k] + 1, ..., cut[k + 1]`, and `K` those after.
    token, flat : float64 arrays, shape (K,)
        Price of an own token, and of running, in each step of a stretch.
    grid : int64 array
        Starts that are tried, ascending; earlier ones than the arrival count as it.
    least, start : arrays, shape (K + 1, D), filled
        Infinite where no run fits.
    """
    count = len(cut) - 1
    wide = least.shape[1]
    sums = np.zeros((3, count + 1))
    for k in range(count):
        length = cut[k + 1] - cut[k]
        middle = (cut[k] + cut[k + 1] + 1) * 0.5
        sums[0, k + 1] = sums[0, k] + token[k] * length
        sums[1, k + 1] = sums[1, k] + token[k] * middle * length
        sums[2, k + 1] = sums[2, k] + flat[k] * length
    least[:] = np.inf
    start[:] = -1
    here = until = 0
    for j in range(len(grid)):
        t = max(grid[j], arrival)
        end = t + decode
        while here < count and cut[here + 1] <= t:
            here += 1
        while until < count and cut[until + 1] < end:
            until += 1
        if until - here >= wide:
            continue
        tokens = sums[0, until] - sums[0, here]
        moment = sums[1, until] - sums[1, here]
        more = sums[2, until] - sums[2, here]
        if until < count:
            r = end - cut[until]
            tokens += token[until] * r
            moment += token[until] * (cut[until] + end + 1) * 0.5 * r
            more += flat[until] * r
        if here < count:
            r = t - cut[here]
            tokens -= token[here] * r
            moment -= token[here] * (cut[here] + t + 1) * 0.5 * r
            more -= flat[here] * r
        cost = end + (prefill - t) * tokens + moment + more
        if cost < least[here, until - here]:
            least[here, until - here] = cost
            start[here, until - here] = t
    for d in range(1, wide):
        for a in range(count + 1):
            for b in range(a, min(a + 2, count + 1)):
                if least[b, d - 1] < least[a, d]:
                    least[a, d] = least[b, d - 1]
                    start[a, d] = start[b, d - 1]


@kernel
def _use(
    prefill: int, t: int, decode: int, cut: Ints, part: float, running: Floats,
    held: Floats,
) -> None:  # fmt: skip
    """Add a part of a run to the steps that it runs, and own tokens in them."""
    for k in range(len(cut) - 1):
        low, high = max(cut[k], t), min(cut[k + 1], t + decode)
        if high > low:
            steps = part * (high - low)
            running[k] += steps
            held[k] += steps * (prefill - t + (low + high + 1) * 0.5)


@kernel
def joint_excess(
    ids: Ints,
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    cut: Ints,
    token: Floats,
    flat: Floats,
    rest: Floats,
    grid: Ints,
    wide: int,
    value: Floats,
    width: float,
    weight: Floats,
    running: Floats,
    held: Floats,
    used: Floats,
) -> float:
    """Return by how much values of one leaf are too high, and add up what is used.

    Of windows and longest requests (`sortedf.joint_values`), each has the share
    `exp(-(worst - own excess) / width)` of the number of requests.

    Parameters
    ----------
    ids : int64 array, shape (g,)
        Requests of the leaf, by ascending answers.
    prefill, decode, arrival : int64 arrays, shape (n,)
    cut, grid : int64 arrays
        As in `window_costs`.
    token : float64 array, shape (K,)
    flat : float64 array, shape (n, K)
    rest : float64 array, shape (K,)
        Price of a step in which one of them runs.
    wide : int
        Stretches of a window, at most.
    value : float64 array, shape (n,)
    width : float
    weight : float64 array, shape (n,), added to
        Shares of the windows in which a request's value counts.
    running, held : float64 arrays, shape (n, K), added to
        Steps that requests run, and own tokens in these steps.
    used : float64 array, shape (K,), added to
        Steps in which the leaf is held.
    """
    count, size = len(cut) - 1, len(ids)
    least = np.empty((size, count + 1, wide))
    start = np.empty((size, count + 1, wide), dtype=np.int64)
    alone = np.empty((count + 1, wide))
    alone_start = np.empty((size, count + 1, wide), dtype=np.int64)
    paid = np.zeros(count + 2)
    for k in range(count):
        paid[k + 1] = paid[k] + rest[k] * (cut[k + 1] - cut[k])
    paid[count + 1] = paid[count]
    gained = np.zeros((count + 1, wide))
    over = np.empty((size, count + 1, wide))
    worst = 0.0
    for x in range(size):
        i = ids[x]
        window_costs(
            prefill[i], decode[i], arrival[i], cut, token, flat[i], grid, least[x],
            start[x],
        )  # fmt: skip
        window_costs(
            prefill[i], decode[i], arrival[i], cut, token, flat[i] + rest, grid, alone,
            alone_start[x],
        )  # fmt: skip
        for a in range(count + 1):
            for d in range(min(wide, count + 1 - a)):
                inner = least[x, a, d] + max(paid[a + d] - paid[a + 1], 0.0)
                if inner > alone[a, d]:
                    alone_start[x, a, d] = -1  # the stretches between are paid for
                over[x, a, d] = gained[a, d] + value[i] - max(alone[a, d], inner)
                gained[a, d] += max(value[i] - least[x, a, d], 0.0)
                worst = max(worst, over[x, a, d])
    whole = np.exp(-worst / width)
    for x in range(size):
        for a in range(count + 1):
            for d in range(min(wide, count + 1 - a)):
                if over[x, a, d] > worst - FAR * width:
                    whole += np.exp((over[x, a, d] - worst) / width)
    for x in range(size):
        for a in range(count + 1):
            for d in range(min(wide, count + 1 - a)):
                if over[x, a, d] <= worst - FAR * width:
                    continue
                part = size * np.exp((over[x, a, d] - worst) / width) / whole
                first = alone_start[x, a, d]
                if first < 0:
                    for k in range(a + 1, a + d):
                        used[k] += part * (cut[k + 1] - cut[k])
                    first = start[x, a, d]
                else:
                    for k in range(count):
                        low = max(cut[k], first)
                        high = min(cut[k + 1], first + decode[ids[x]])
                        used[k] += part * max(high - low, 0)
                for y in range(x + 1):
                    i = ids[y]
                    if y == x or value[i] > least[y, a, d]:
                        weight[i] += part
                        t = first if y == x else start[y, a, d]
                        _use(prefill[i], t, decode[i], cut, part, running[i], held[i])
    return worst
