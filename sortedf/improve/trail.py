"""Ancestry of the rows of a beam, from which start steps are recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

LEVELS = 256
"""Levels between two attempts to discard settled ones."""


class _Level(NamedTuple):
    """Row `k` started `rank[first[k]:first[k + 1]]`; its parent is `parent[k]`."""

    parent: Ints
    rank: Ints
    start: Ints
    first: Ints


class Trail:
    """The levels of a beam search, discarded once all rows share one ancestor.

    After some levels all rows descend from one row of an early level. The starts of
    that row are final, and the levels up to it are discarded.
    """

    def __init__(self, num_requests: int) -> None:
        self._settled = np.zeros(num_requests, dtype=np.int64)
        self._levels: list[_Level] = []
        self._look_at = LEVELS

    def add(self, parent: Ints, rank: Ints, start: Ints, first: Ints) -> None:
        """Add a level; see `_Level`."""
        self._levels.append(_Level(parent, rank.copy(), start.copy(), first))
        if len(self._levels) >= self._look_at:
            self._settle()
            self._look_at = len(self._levels) + LEVELS

    def starts(self, row: int) -> Ints:
        """Start steps by rank of the schedule in a row of the last level."""
        start = self._settled.copy()
        _write(start, self._levels, row)
        return start

    def _settle(self) -> None:
        rows = np.arange(len(self._levels[-1].parent))
        for k in range(len(self._levels) - 1, 0, -1):
            rows = np.unique(self._levels[k].parent[rows])
            if len(rows) == 1:
                _write(self._settled, self._levels[:k], int(rows[0]))
                del self._levels[:k]
                return


def _write(start: Ints, levels: list[_Level], row: int) -> None:
    """Write the starts of `row` of the last level and of its ancestors."""
    for level in reversed(levels):
        own = slice(level.first[row], level.first[row + 1])
        start[level.rank[own]] = level.start[own]
        row = int(level.parent[row])
