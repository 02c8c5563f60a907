"""Greedy filling of a group in a given order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool


def greedy_group(pool: Pool, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Prefix of `order` (cut where memory ends) with the smallest `F`.

    Ties go to the longer prefix, so at least one request is taken: each fits alone.
    """
    memory = np.cumsum(pool.peak[order])
    order = order[: int(np.searchsorted(memory, pool.kv_budget, side="right"))]
    sizes = np.arange(1, len(order) + 1)
    f = np.cumsum(pool.decode[order]) / (sizes * sizes)
    best = len(f) - 1 - int(np.argmin(f[::-1]))
    return order[: best + 1]
