"""Group selection by local search: swap, insert and drop from greedy starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.greedy import greedy_group
from sortedf.groups.pool import group_key
from sortedf.groups.quantile_greedy import quantile_greedy
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool

    Ints = NDArray[np.int64]


def local_swap(pool: Pool, rng: np.random.Generator) -> Ints:
    """Select a group that no single swap, insertion or drop makes better.

    Starts are greedy: by answer length, by peak, by their product, and the group of
    `quantile_greedy`, which alone uses `rng`. Each is improved on its own and the best
    result is kept. Better means smaller `F`, then larger, then less memory; the last
    makes room for a later insertion. A pass costs `O(k (m - k))`.
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
def _improve(decode: Ints, peak: Ints, budget: int, inside: NDArray[np.bool_]) -> None:
    """Move to better groups until there is none next to it (modifies `inside`).

    Every move lowers (F, -size, memory) lexicographically, so it ends.
    """
    m = len(decode)
    size = 0
    total = 0
    memory = 0
    for i in range(m):
        if inside[i]:
            size += 1
            total += decode[i]
            memory += peak[i]
    moved = True
    while moved:
        moved = False
        for j in range(m):
            f = total / (size * size)
            if inside[j]:
                if size > 1 and (total - decode[j]) / ((size - 1) * (size - 1)) < f:
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
                size += 1
                total += decode[j]
                memory += peak[j]
                moved = True
                continue
            # The best partner: most tokens saved, then most memory freed.
            partner = -1
            for i in range(m):
                if not inside[i] or memory - peak[i] + peak[j] > budget:
                    continue
                if decode[i] < decode[j] or (
                    decode[i] == decode[j] and peak[i] <= peak[j]
                ):
                    continue
                if (
                    partner < 0
                    or decode[i] > decode[partner]
                    or (decode[i] == decode[partner] and peak[i] > peak[partner])
                ):
                    partner = i
            if partner >= 0:
                inside[partner] = False
                inside[j] = True
                total += decode[j] - decode[partner]
                memory += peak[j] - peak[partner]
                moved = True
