"""Group selection for large pools: quantiles from a sample, then one greedy scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.table import register_selector
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool

    Ints = NDArray[np.int64]

SAMPLE_SIZE = 512
"""Size of the sample from which the quantiles are estimated."""

CUTS = np.linspace(0.05, 1.0, 20)
"""Quantiles of the peak above which a request counts as an outlier; each is tried."""


def quantile_greedy(pool: Pool, rng: np.random.Generator) -> Ints:
    """Select a group by cutting outliers and filling greedily.

    For each of the `CUTS`, requests with a peak above that quantile of a sample are
    left out, and the others are taken by answer length, shortest first, until the
    memory is full. The group is the prefix of least `F`, so long answers are cut as
    well. The best group over all cuts is returned; `rng` draws the sample. As a pool is
    sorted by answer length, a scan ends when the memory is full: at worst `O(m)`, and
    far less in a large pool.
    """
    m = len(pool.ids)
    sample = pool.peak
    if m > SAMPLE_SIZE:
        sample = pool.peak[rng.integers(0, m, SAMPLE_SIZE)]
    caps = np.sort(sample)[np.ceil(CUTS * (len(sample) - 1)).astype(np.int64)]
    positions = np.empty(m, dtype=np.int64)
    size = _best_scan(pool.decode, pool.peak, caps, pool.kv_budget, positions)
    return positions[:size].copy()


@kernel
def _scan(
    decode: Ints, peak: Ints, cap: int, budget: int, positions: Ints
) -> tuple[int, int]:
    """Fill `positions` with requests of peak <= `cap`, shortest answer first.

    Returns the size and the sum of `o` of the prefix of least F; ties: the longest.
    """
    memory = size = total = 0
    best_size = best_total = 0
    for i in range(len(decode)):
        if peak[i] > cap:
            continue
        if memory + peak[i] > budget:
            break
        positions[size] = i
        size += 1
        total += decode[i]
        memory += peak[i]
        if best_size == 0 or (
            total / (size * size) <= best_total / (best_size * best_size)
        ):
            best_size = size
            best_total = total
    return best_size, best_total


@kernel
def _best_scan(
    decode: Ints, peak: Ints, caps: Ints, budget: int, positions: Ints
) -> int:
    """Fill `positions` with the scan of least F over all caps; return its size.

    `caps` ascend. Ties: larger, then the lower cap. The scans share `positions`, so the
    best one is repeated at the end.
    """
    best_cap = caps[0]
    best_size = 0
    best_f = np.inf
    for c in range(len(caps)):
        cap = caps[c]
        if c > 0 and cap == caps[c - 1]:
            continue
        size, total = _scan(decode, peak, cap, budget, positions)
        f = total / (size * size)
        if f < best_f or (f == best_f and size > best_size):
            best_cap, best_size, best_f = cap, size, f
    _scan(decode, peak, best_cap, budget, positions)
    return best_size


register_selector(
    "quantile-greedy",
    about="Sorted-F, groups by sampled quantiles",
    guarantee="none proven",
    cost="O(n) a group",
)(lambda options: quantile_greedy)
