"""Exact group selection by dynamic programming over size and memory."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sortedf.errors import TooLargeError
from sortedf.groups.pool import largest_size
from sortedf.groups.table import GUARANTEE, register_selector
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool

    Ints = NDArray[np.int64]

MAX_TABLE_BYTES = 2**31
"""Largest table of decisions; a larger one raises TooLargeError."""

DP_UP_TO = 100
"""Requests up to which it is meant to be used."""

INFEASIBLE = 2**62
"""Larger than any sum of answer lengths."""


def exact_dp(pool: Pool, rng: np.random.Generator) -> Ints:
    """Select the feasible group of least `F`; ties: larger, then the lower ids.

    `best[k, m]` is the least sum of `o` over `k` requests whose peaks sum up to at most
    `m`. Requests are added from the highest id to the lowest, and a request is taken
    if that is no worse; reading the decisions from the lowest id upwards then gives,
    among the groups of one size and sum, the lexicographically first one by ids.

    Time is `O(m k M)` for the largest feasible size `k`, memory one bit for each of
    these states. Deterministic: `rng` is part of every selector's signature.

    Raises
    ------
    TooLargeError
        If the table of decisions would not fit in `MAX_TABLE_BYTES`.
    """
    budget = min(pool.kv_budget, int(pool.peak.sum()))
    size = largest_size(pool)
    words = budget // 64 + 1
    need = len(pool.ids) * size * words * 8
    if need > MAX_TABLE_BYTES:
        raise TooLargeError(
            f"exact-dp would need {need / 2**30:.1f} GiB for {len(pool.ids)} requests "
            f"and a KV budget of {pool.kv_budget} (allowed: "
            f"{MAX_TABLE_BYTES / 2**30:.0f} GiB); use exact."
        )
    by_id = np.argsort(pool.ids)
    take = np.zeros((len(by_id), size, words), dtype=np.uint64)
    best = np.full((size + 1, budget + 1), INFEASIBLE, dtype=np.int64)
    best[0] = 0
    _fill(pool.decode[by_id], pool.peak[by_id], best, take)
    sums = best[1:, budget].tolist()
    sizes = [k for k in range(1, size + 1) if sums[k - 1] < INFEASIBLE]
    chosen = min(sizes, key=lambda k: (Fraction(sums[k - 1], k * k), -k))
    group = np.empty(chosen, dtype=np.int64)
    _read(pool.peak[by_id], take, budget, group)
    return np.sort(by_id[group])


@kernel
def _fill(decode: Ints, peak: Ints, best: Ints, take: NDArray[np.uint64]) -> None:
    """Fill `best` and the bits of `take` (both modified in place)."""
    n, size, words = take.shape
    budget = best.shape[1] - 1
    for i in range(n - 1, -1, -1):
        o = decode[i]
        w = peak[i]
        for k in range(min(size, n - i), 0, -1):
            for word in range(w // 64, words):
                bits = np.uint64(0)
                first = max(64 * word, w)
                for m in range(first, min(64 * word + 64, budget + 1)):
                    with_it = best[k - 1, m - w] + o
                    if with_it < INFEASIBLE and with_it <= best[k, m]:
                        best[k, m] = with_it
                        bits |= np.uint64(1) << np.uint64(m - 64 * word)
                take[i, k - 1, word] = bits


@kernel
def _read(peak: Ints, take: NDArray[np.uint64], budget: int, group: Ints) -> None:
    """Fill `group` with the indices that were taken (modified in place)."""
    k = len(group)
    found = 0
    m = budget
    for i in range(len(peak)):
        if found == len(group):
            break
        word = take[i, k - found - 1, m // 64]
        if (word >> np.uint64(m % 64)) & np.uint64(1):
            group[found] = i
            found += 1
            m -= peak[i]


register_selector(
    "exact-dp",
    about="Sorted-F, groups by dynamic programming",
    guarantee=GUARANTEE,
    cost="O(n^2 M) a group",
    max_requests=DP_UP_TO,
)(lambda options: exact_dp)
