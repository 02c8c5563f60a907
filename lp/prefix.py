"""Prefix sums of prices over steps, and least prices in windows of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]
    """Integers or floats; results are of the same type."""


def prefix_sums(price: Numbers) -> tuple[Numbers, Numbers]:
    """Return sums of `lambda_u` and of `u lambda_u` over `u <= t`, `t = 0, ..., T`."""
    sums = np.zeros(len(price) + 1, dtype=price.dtype)
    moments = np.zeros(len(price) + 1, dtype=price.dtype)
    np.cumsum(price, out=sums[1:])
    np.cumsum(price * np.arange(1, len(price) + 1), out=moments[1:])
    return sums, moments


def window_minimum(price: Numbers, width: int) -> Numbers:
    """Least price in the `width` steps from each step on; padded with 0.

    `width` is a power of two.
    """
    padded = np.concatenate([price, np.zeros(width, dtype=price.dtype)])
    reach = 1
    while reach < width:
        padded = np.minimum(padded[:-reach], padded[reach:])
        reach *= 2
    return np.asarray(padded[: len(price)])
