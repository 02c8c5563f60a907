"""Thresholds `k, 2k, 4k, ...` of service: MemGuard's, and the quanta of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def level(work: Floats, first: float) -> Ints:
    """Count the thresholds `first, 2 first, 4 first, ...` reached."""
    # frexp(x) gives x = m 2^e with m in [1/2, 1): exact, unlike a logarithm.
    exponent = np.frexp(work / first)[1]
    return np.asarray(np.maximum(exponent, 0), dtype=np.int64)


def threshold(number: Ints, first: float) -> Floats:
    """Return the last threshold reached at a level; 0 at level 0."""
    return np.where(number > 0, np.ldexp(first, number - 1), 0.0)
