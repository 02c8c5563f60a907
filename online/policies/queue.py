"""Waiting requests in the order of a rank that does not change while they wait."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from online.requests import RequestView

if TYPE_CHECKING:
    from online.state import State

Rank: TypeAlias = Callable[[RequestView, NDArray[np.int64]], NDArray[np.float64]]
"""Ranks of the requests with the given ids, lower first."""


class RankedQueue:
    """Ids sorted by (rank, arrival, id), kept up to date from the snapshots.

    A request is ranked when it begins to wait, and again when it does so after an
    eviction; in between nothing is sorted, so that ten thousand waiting requests cost
    no more than ten.
    """

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._sorted: list[tuple[float, float, int]] = []
        self._key: dict[int, tuple[float, float, int]] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[int]:
        return (key[2] for key in self._sorted)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        return [key[2] for key in self._sorted[:count]]

    def with_ranks(self) -> Iterator[tuple[float, float, int]]:
        """Go through (rank, arrival, id), first to start first."""
        return iter(self._sorted)

    def update(self, state: State) -> None:
        """Apply what joined and left since the last decision."""
        for i in state.left:
            key = self._key.pop(i, None)
            if key is not None:
                del self._sorted[bisect_left(self._sorted, key)]
        if not state.joined:
            return
        # Who came and went in between, or came twice, is looked up in what waits now.
        ids = [i for i in dict.fromkeys(state.joined) if state.is_waiting(i)]
        for key in self._rank_all(state, ids):
            self._key[key[2]] = key
            insort(self._sorted, key)

    def rank_again(self, state: State) -> None:
        """Sort all that wait anew, after the rank itself has changed."""
        self._sorted = sorted(self._rank_all(state, list(self._key)))
        self._key = {key[2]: key for key in self._sorted}

    def _rank_all(
        self, state: State, ids: list[int]
    ) -> Iterator[tuple[float, float, int]]:
        many = np.array(ids, dtype=np.int64)
        ranks = self._rank(state.requests, many).tolist()
        arrivals = state.requests.arrival_s[many].tolist()
        return zip(ranks, arrivals, ids, strict=True)
