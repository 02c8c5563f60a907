"""Who descends from whom: how the starts of a schedule are found at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

LEVELS = 256
"""Levels after which it is looked whether they have become settled."""


class _Level(NamedTuple):
    """`rank[first[k]:first[k + 1]]` is what row `k` started, `parent[k]` its parent."""

    parent: Ints
    rank: Ints
    start: Ints
    first: Ints


class Trail:
    """The levels of a beam search, forgotten where only one schedule is left.

    After a while all rows descend from one row of an early level. What that row has
    started is settled, and the levels up to there can go.
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
    """Write what `row` of the last level and its ancestors have started."""
    for level in reversed(levels):
        own = slice(level.first[row], level.first[row + 1])
        start[level.rank[own]] = level.start[own]
        row = int(level.parent[row])
