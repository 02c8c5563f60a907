"""Waiting requests in the order of a rank that changes with time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from online.state import State

if TYPE_CHECKING:
    Ints = NDArray[np.int64]

MovingRank: TypeAlias = Callable[[State, NDArray[np.int64]], NDArray[np.float64]]
"""Ranks of the requests with the given ids at the time of a snapshot, lower first."""


class MovingQueue:
    """Ids sorted by (rank, arrival, id) at the time of the last snapshot.

    All waiting requests are ranked again at each call of `head`: `O(waiting)` in array
    operations.
    """

    def __init__(self, rank: MovingRank) -> None:
        self._rank = rank
        self._ids: Ints = np.zeros(16, dtype=np.int64)
        self._place: dict[int, int] = {}
        self._state: State | None = None

    def update(self, state: State) -> None:
        """Apply what joined and left since the last decision."""
        self._state = state
        for i in state.left:
            place = self._place.pop(i, None)
            if place is not None and place < len(self._place):
                last = int(self._ids[len(self._place)])
                self._ids[place] = last
                self._place[last] = place
        for i in state.joined:
            if i not in self._place and state.is_waiting(i):
                count = len(self._place)
                if count == len(self._ids):
                    self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
                self._ids[count] = i
                self._place[i] = count

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        ids = self._ids[: len(self._place)]
        if self._state is None or count <= 0:
            return []
        ranks = self._rank(self._state, ids)
        if count < len(ids):
            # All ties at the end of the head are kept, to be sorted by arrival and id.
            among = ranks <= np.partition(ranks, count - 1)[count - 1]
            ids, ranks = ids[among], ranks[among]
        arrival = self._state.requests.arrival_s[ids]
        first: list[int] = ids[np.lexsort((ids, arrival, ranks))[:count]].tolist()
        return first
