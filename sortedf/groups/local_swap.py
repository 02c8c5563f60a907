"""Group selection by local search: swap, insert and drop from greedy starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.greedy import greedy_group
from sortedf.groups.pool import group_key
from sortedf.groups.quantile_greedy import quantile_greedy
from sortedf.groups.table import register_selector
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool

    Ints = NDArray[np.int64]


LOCAL_SWAP_UP_TO = 2000
"""Requests up to which it is meant to be used."""


def local_swap(pool: Pool, rng: np.random.Generator) -> Ints:
    """Select a group that no single swap, insertion or drop improves.

    Starts are greedy groups by answer length, by peak and by their product, and the
    group of `quantile_greedy`, the only one that uses `rng`. Each is improved and the
    best result is returned. Better means smaller `F`, then larger, then less memory,
    which leaves memory for a later insertion. A pass costs `O(k (m - k))`.
    """
    orders = [
        np.arange(len(pool.ids)),  # a pool is sorted by answer length
        np.argsort(pool.peak, kind="stable"),
        np.argsort(pool.peak * pool.decode, kind="stable"),
    ]
    starts = [greedy_group(pool, order) for order in orders]
    starts.append(quantile_greedy(pool, rng))
    groups = []
    for start in starts:
        inside = np.zeros(len(pool.ids), dtype=np.bool_)
        inside[start] = True
        _improve(pool.decode, pool.peak, pool.kv_budget, inside)
        groups.append(np.flatnonzero(inside))
    return min(groups, key=lambda group: group_key(pool, group))


@kernel
def _best_partner(
    j: int, members: Ints, size: int, room: int, decode: Ints, peak: Ints
) -> int:
    """Position in `members` of the request that `j` should replace, or -1.

    Preferred: most tokens saved, then most memory freed, then lower pool position.
    """
    partner = -1
    for k in range(size):
        i = members[k]
        if peak[j] - peak[i] > room or decode[i] < decode[j]:
            continue
        if decode[i] == decode[j] and peak[i] <= peak[j]:
            continue
        if partner >= 0:
            best = members[partner]
            if decode[i] < decode[best]:
                continue
            if decode[i] == decode[best] and (
                peak[i] < peak[best] or (peak[i] == peak[best] and i > best)
            ):
                continue
        partner = k
    return partner


@kernel
def _improve(decode: Ints, peak: Ints, budget: int, inside: NDArray[np.bool_]) -> None:
    """Move to better neighbours until there is none (`inside` is modified in place).

    Every move lowers (F, -size, memory) lexicographically, so it terminates.
    """
    members = np.empty(len(decode), dtype=np.int64)
    size = total = memory = 0
    for i in range(len(decode)):
        if inside[i]:
            members[size] = i
            size += 1
            total += decode[i]
            memory += peak[i]
    moved = True
    while moved:
        moved = False
        for j in range(len(decode)):
            f = total / (size * size)
            if inside[j]:
                if size > 1 and (total - decode[j]) / ((size - 1) * (size - 1)) < f:
                    for k in range(size):
                        if members[k] == j:
                            members[k] = members[size - 1]
                            break
                    inside[j] = False
                    size -= 1
                    total -= decode[j]
                    memory -= peak[j]
                    moved = True
                continue
            if (
                memory + peak[j] <= budget
                and (total + decode[j]) / ((size + 1) * (size + 1)) <= f
            ):
                inside[j] = True
                members[size] = j
                size += 1
                total += decode[j]
                memory += peak[j]
                moved = True
                continue
            partner = _best_partner(j, members, size, budget - memory, decode, peak)
            if partner >= 0:
                i = members[partner]
                members[partner] = j
                inside[i] = False
                inside[j] = True
                total += decode[j] - decode[i]
                memory += peak[j] - peak[i]
                moved = True


register_selector(
    "local-swap",
    about="Sorted-F, groups by local search",
    guarantee="none proven",
    cost="O(n^2) a pass",
    max_requests=LOCAL_SWAP_UP_TO,
)(lambda options: local_swap)
