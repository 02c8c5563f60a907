"""Waiting requests in the order of a rank that is constant while they wait."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from online.requests import EachRequest, RequestView

if TYPE_CHECKING:
    from online.state import State

Key: TypeAlias = tuple[float, float, int]

Rank: TypeAlias = Callable[[RequestView, NDArray[np.int64]], NDArray[np.float64]]
"""Ranks of the requests with the given ids, lower first."""

RankOfOne: TypeAlias = Callable[[EachRequest, int], float]
"""Rank of one request."""

MANY = 32
"""Number of new requests above which sorting is faster than single insertions."""


class RankedQueue:
    """Ids sorted by (rank, arrival, id), updated from the snapshots.

    A request is ranked when it starts waiting, when its prediction or score changes,
    and when it waits again after an eviction; otherwise nothing is sorted, so the cost
    of a step does not depend on the number of waiting requests.

    Parameters
    ----------
    rank : Rank
    rank_of_one : RankOfOne, optional
        The same for one request, which is faster for a few.
    """

    def __init__(self, rank: Rank, rank_of_one: RankOfOne | None = None) -> None:
        self._rank = rank
        self._rank_of_one = rank_of_one
        # Keys are negated: the first request is at the end, where removal is cheap.
        self._sorted: list[Key] = []
        self._key: dict[int, Key] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[int]:
        return (-key[2] for key in reversed(self._sorted))

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        if count <= 0:
            return []
        return [-key[2] for key in self._sorted[: -count - 1 : -1]]

    def first(self, count: int) -> list[Key]:
        """Return (rank, arrival, id) of the first `count`, which is at least 1."""
        return [(-rank, -s, -i) for rank, s, i in self._sorted[: -count - 1 : -1]]

    def update(self, state: State) -> None:
        """Apply what joined, left and changed since the last decision."""
        if state.left or state.changed:
            self._drop(state.left)
            self._drop(state.changed)
        if not (state.joined or state.changed):
            return
        # A request may have joined and left in between, or joined twice.
        both = dict.fromkeys([*state.joined, *state.changed])
        ids = [i for i in both if i not in self._key and state.is_waiting(i)]
        if not ids:
            return
        keys = self._rank_all(state, ids)
        self._key.update(zip(ids, keys, strict=True))
        if len(ids) > MANY:
            self._sorted += keys
            self._sorted.sort()
        else:
            for key in keys:
                insort(self._sorted, key)

    def rank_again(self, state: State) -> None:
        """Rank and sort all waiting requests again, after the rank has changed."""
        ids = list(self._key)
        keys = self._rank_all(state, ids)
        self._key = dict(zip(ids, keys, strict=True))
        self._sorted = sorted(keys)

    def _drop(self, ids: Iterable[int]) -> None:
        waits, keys = self._sorted, self._key
        for i in ids:
            key = keys.pop(i, None)
            if key is None:
                continue
            if waits[-1] is key:  # usually the first request starts
                waits.pop()
            else:
                del waits[bisect_left(waits, key)]

    def _rank_all(self, state: State, ids: list[int]) -> list[Key]:
        rank = self._rank_of_one
        if rank is not None and len(ids) <= MANY:
            each = state.requests.each
            arrival_s = each.arrival_s
            return [(-float(rank(each, i)), -arrival_s[i], -i) for i in ids]
        many = np.array(ids, dtype=np.int64)
        ranks = np.negative(self._rank(state.requests, many)).tolist()
        arrivals = np.negative(state.requests.arrival_s[many]).tolist()
        return list(zip(ranks, arrivals, [-i for i in ids], strict=True))
