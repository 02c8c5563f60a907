"""Expected sharing of prefix blocks in future steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@kernel
def held_by_others(
    ids: Ints, most: Ints, chance: Floats, leaf: Ints, parent: Ints, depth: Ints
) -> Floats:
    """Return the expected blocks of each request held by requests before it.

    Parameters
    ----------
    ids : int64 array, shape (n,)
    most : int64 array, shape (n,)
        Number of first blocks of each that it can share.
    chance : float64 array, shape (n, k)
        Probability that a request still runs, at each of `k` times.
    leaf, parent, depth : int64 arrays
        See `online.prefix_forest.PrefixForest`.

    Returns
    -------
    float64 array, shape (n, k)
    """
    count, points = chance.shape
    absent = np.ones((len(parent), points))  # probability that none holds a node
    blocks = np.zeros((count, points))
    for r in range(count):
        node = leaf[ids[r]] if ids[r] < len(leaf) else -1
        while node >= 0:
            above = parent[node]
            if depth[node] <= most[r]:
                length = depth[node] - (depth[above] if above >= 0 else 0)
                for p in range(points):
                    blocks[r, p] += length * (1 - absent[node, p])
                    absent[node, p] *= 1 - chance[r, p]
            node = above
    return blocks
