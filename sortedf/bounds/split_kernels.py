"""Jitted loops of the bound by split prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FAR = 30.0
"""Exponent beyond which a start's share is 0."""


@kernel
def shares_of_starts(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    cut: Ints,
    row: Ints,
    token: Floats,
    flat: Floats,
    grid: Ints,
    width: float,
    running: Floats,
    held: Floats,
) -> float:
    """Cost of all requests, each at its cheapest start, and use near these starts.

    A start has the share `exp(-(cost - least) / width)`, made to add up to 1 for each
    request. Tokens are counted without rounding to blocks.

    Parameters
    ----------
    prefill, decode, arrival : int64 arrays, shape (n,)
        Own tokens, answers and arrivals.
    cut : int64 array, shape (K + 1,)
        Stretch `k` has the steps `cut[k] + 1, ..., cut[k + 1]`.
    row : int64 array, shape (n,)
        Row of `token` of each request.
    token : float64 array, shape (rows, K)
        Price of an own token in each step of a stretch.
    flat : float64 array, shape (n, K)
        What a running request pays beside it.
    grid : int64 array
        Starts that are tried, ascending.
    width : float
    running, held : float64 arrays, shape (n, K), filled
        Mean number of steps that each request runs, and of own tokens in these steps.

    Returns
    -------
    float
        Sum of the least costs, completions included.
    """
    count = len(cut) - 1
    points = len(grid)
    sums = np.zeros((3, count + 1))
    use = np.empty((4, count + 1))
    cost = np.empty(points)
    at = np.empty(points, dtype=np.int64)
    k = 0
    for j in range(points):
        while k < count and cut[k + 1] <= grid[j]:
            k += 1
        at[j] = k
    total = 0.0
    for i in range(len(prefill)):
        price, more, s, o = token[row[i]], flat[i], prefill[i], decode[i]
        for k in range(count):
            length = cut[k + 1] - cut[k]
            sums[0, k + 1] = sums[0, k] + price[k] * length
            middle = (cut[k] + cut[k + 1] + 1) * 0.5
            sums[1, k + 1] = sums[1, k] + price[k] * middle * length
            sums[2, k + 1] = sums[2, k] + more[k] * length
        least = np.inf
        first = points - 1
        ke = 0
        for j in range(points - 1, -1, -1):
            if grid[j] >= arrival[i]:
                first = j
        for j in range(first, points):
            t = max(grid[j], arrival[i])
            end = t + o
            k = at[j]
            while k < count and cut[k + 1] <= t:
                k += 1
            while ke < count and cut[ke + 1] <= end:
                ke += 1
            a0, a1, a2 = sums[0, ke], sums[1, ke], sums[2, ke]
            if ke < count:
                r = end - cut[ke]
                a0 += price[ke] * r
                a1 += price[ke] * (cut[ke] + end + 1) * 0.5 * r
                a2 += more[ke] * r
            a0, a1, a2 = a0 - sums[0, k], a1 - sums[1, k], a2 - sums[2, k]
            if k < count:
                r = t - cut[k]
                a0 -= price[k] * r
                a1 -= price[k] * (cut[k] + t + 1) * 0.5 * r
                a2 -= more[k] * r
            cost[j] = end + (s - t) * a0 + a1 + a2
            least = min(least, cost[j])
        total += least
        whole = 0.0
        for j in range(first, points):
            x = (cost[j] - least) / width
            cost[j] = np.exp(-x) if x < FAR else 0.0
            whole += cost[j]
        use[:] = 0.0
        ke = 0
        for j in range(first, points):
            t = max(grid[j], arrival[i])
            end = t + o
            while ke < count and cut[ke + 1] <= end:
                ke += 1
            if cost[j] == 0.0:
                continue
            q = cost[j] / whole
            k = at[j]
            while k < count and cut[k + 1] <= t:
                k += 1
            use[0, ke] += q
            use[1, ke] += q * (s - t)
            use[0, k] -= q
            use[1, k] -= q * (s - t)
            if ke < count:
                r = end - cut[ke]
                use[2, ke] += q * r
                use[3, ke] += q * r * (s - t + (cut[ke] + end + 1) * 0.5)
            if k < count:
                r = t - cut[k]
                use[2, k] -= q * r
                use[3, k] -= q * r * (s - t + (cut[k] + t + 1) * 0.5)
        steps, tokens = use[0, count], use[1, count]
        for k in range(count - 1, -1, -1):
            length = cut[k + 1] - cut[k]
            middle = (cut[k] + cut[k + 1] + 1) * 0.5
            running[i, k] = use[2, k] + steps * length
            held[i, k] = use[3, k] + (tokens + steps * middle) * length
            steps += use[0, k]
            tokens += use[1, k]
    return total


@kernel
def _tokens_up_to(tokens: int, block: int) -> int:
    """Sum of 1, 2, ..., `tokens`, each rounded up to whole blocks."""
    whole = tokens // block
    blocks = block * (whole * (whole + 1) // 2) + (tokens - whole * block) * (whole + 1)
    return int(block * blocks)


@kernel
def least_costs(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    block: int,
    cut: Ints,
    row: Ints,
    token: Ints,
    flat: Ints,
    bits: int,
) -> Ints:
    """Least `2^bits (t + o)` plus what each request pays, over all starts, exactly.

    Parameters are as in `shares_of_starts`, prices in integers.
    """
    last, count = cut[-1], len(cut) - 1
    least = np.empty(len(prefill), dtype=np.int64)
    for i in range(len(prefill)):
        s, o = prefill[i], decode[i]
        best = (max(arrival[i], last) + o) << bits
        here = 0  # stretch of the first step after the start
        for t in range(arrival[i], last):
            while cut[here + 1] <= t:
                here += 1
            cost = (t + o) << bits
            done, k = 0, here
            before = _tokens_up_to(s, block)
            while done < o and k < count:
                until = min(cut[k + 1] - t, o)
                after = _tokens_up_to(s + until, block)
                cost += token[row[i], k] * (after - before)
                cost += flat[i, k] * (until - done)
                done, before = until, after
                k += 1
            best = min(best, cost)
        least[i] = best
    return least
