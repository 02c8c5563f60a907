"""Groups of one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups import Pool, register_selector

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shortest_alone(pool: Pool, rng: np.random.Generator) -> NDArray[np.int64]:
    """Select the request with the shortest answer, which is the first of the pool."""
    return np.zeros(1, dtype=np.int64)


register_selector(
    "alone",
    about="Sorted-F, groups of one request",
    guarantee="none",
    cost="O(n) a group",
)(lambda options: shortest_alone)
