"""Reduction of long curves to the points that are visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

COLUMNS = 2000
"""Columns into which a long curve is divided: more than its axis has pixels."""


def thin(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Drop the points of a curve that are not visible.

    The first, last, lowest and highest point of each column are kept, which give the
    same line (Jugel et al., M4, VLDB 2014). Without this, a filled curve of many
    thousand points can overflow the renderer.

    Parameters
    ----------
    x, y : arrays of numbers, shape (k,)
        Points of a curve, `x` ascending. Short curves are returned as they are.
    """
    if len(x) <= 4 * COLUMNS:
        return x, y
    span = x[-1] - x[0]
    share = (x - x[0]) / (span if span > 0 else 1)
    column = np.minimum(share * COLUMNS, COLUMNS - 1).astype(np.int64)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    last = np.append(first[1:], len(x)) - 1
    by_height = np.lexsort((y, column))  # by y within each column
    keep = np.unique(np.concatenate([first, last, by_height[first], by_height[last]]))
    return x[keep], y[keep]
