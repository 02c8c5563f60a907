"""Exact selection from few requests: Pareto fronts of (sum of answers, memory).

Requests are added from the highest id to the lowest. A layer holds, for each number of
requests taken from those already added, the Pareto-optimal pairs (sum of `o`, sum of
peaks). A pair is dropped if the bounds of `sortedf.groups.core` prove that no group
with it stays within the target and the budget. For a multiplier with costs `c`, let `B`
be the `q` cheapest requests and `theta` the largest cost among them. A group of `q`
requests costs

    sum over B of c  +  sum over its members outside B of (c_i - theta)
                     +  sum over the rest of B of (theta - c_i),

three sums of which the last two never decrease as requests are added: a pair is dropped
when they exceed the difference allowed by the target and the budget.

Read from the lowest id upwards, the layers show for each request in turn whether a
group with the same sum and memory can contain it; this gives the lexicographically
first group.

Layers are kept for `SEGMENT` requests at a time and recomputed when they are read, so
memory stays small with many requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

SEGMENT = 64
"""Requests whose layers are kept at the same time."""

FIRST_STATES = 2**12
"""States allocated at first; the arrays double in size when they are full."""

MAX_STATES = 2**25
"""States of one segment above which the search stops: 512 MiB."""


class StoppedError(Exception):
    """The search reached its limit of time or memory."""


@dataclass(frozen=True, slots=True, eq=False)
class FrontRow:
    """One multiplier's bound: `answer o + memory w - theta count <= slack[j]`.

    Attributes
    ----------
    answer, memory : int
        `D - a` and `a`.
    theta : int
        Cost of the last request among the cheapest.
    slack : int64 array, shape (m + 1,)
        Limit on a pair's value after the requests `j, ..., m - 1` have been added.
    """

    answer: int
    memory: int
    theta: int
    slack: Ints

    @classmethod
    def of(
        cls,
        decode: Ints,
        peak: Ints,
        size: int,
        target: int,
        room: int,
        multiplier: int,
        scale: int,
    ) -> FrontRow:
        """Row for groups of `size >= 1` with `sum o <= target`, `sum w <= room`."""
        cost = (scale - multiplier) * decode + multiplier * peak
        cheapest = np.argpartition(cost, size - 1)[:size]
        theta = int(cost[cheapest].max())
        saved = np.zeros(len(cost) + 1, dtype=np.int64)
        saved[cheapest] = theta - cost[cheapest]
        allowed = (scale - multiplier) * target + multiplier * room
        allowed -= int(cost[cheapest].sum())
        # A member of B that is added counts theta - c until a pair takes it.
        slack = allowed - np.cumsum(saved[::-1])[::-1]
        return cls(scale - multiplier, multiplier, theta, slack)


@dataclass(slots=True, eq=False)
class Layers:
    """Consecutive layers; row 0 has the fewest requests added.

    Attributes
    ----------
    start : int64 array, shape (rows, size + 2)
        Layer `r` holds for `count` the states `start[r, count]` to
        `start[r, count + 1]`, by rising sum of `o` and falling memory.
    decode, peak : int64 arrays
        Both sums of each state, in tokens.
    """

    start: Ints
    decode: Ints
    peak: Ints

    @classmethod
    def empty(cls, size: int) -> Layers:
        """Layer before any request is added: the empty group."""
        start = np.ones((1, size + 2), dtype=np.int64)
        start[0, 0] = 0
        return cls(start, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))

    def last(self) -> Layers:
        """Only the last layer, copied."""
        begin, end = self.start[-1, 0], self.start[-1, -1]
        return Layers(
            self.start[-1:] - begin,
            self.decode[begin:end].copy(),
            self.peak[begin:end].copy(),
        )


def best_choice(
    decode: Ints,
    peak: Ints,
    size: int,
    room: int,
    rows: list[FrontRow],
    stop: Callable[[], bool],
) -> Ints | None:
    """Choose `size` of the requests, given by ascending id, subject to the rows.

    Least sum of `o`, then the lexicographically first; None if there is none. The
    rows must imply that a complete group satisfies the target and `room`.

    Raises
    ------
    StoppedError
        If `stop()` returns true or there are more than `MAX_STATES` states.
    """
    ends = list(range(len(decode), 0, -SEGMENT))
    bases = []
    layers = Layers.empty(size)
    for end in ends:
        bases.append(layers.last())
        layers = _extended(bases[-1], decode, peak, end, rows, stop)
    full, none = layers.start[-1, size : size + 2]
    if full == none:
        return None
    taken = np.zeros(len(decode), dtype=np.bool_)
    left = np.array([size, layers.decode[full], room], dtype=np.int64)
    while ends:
        end, base = ends.pop(), bases.pop()
        if end > SEGMENT:  # the layers of the last segment are still in memory
            layers = _extended(base, decode, peak, end, rows, stop)
        _read(decode, peak, end, layers.start, layers.decode, layers.peak, left, taken)
    return np.flatnonzero(taken)


def _extended(
    base: Layers,
    decode: Ints,
    peak: Ints,
    end: int,
    rows: list[FrontRow],
    stop: Callable[[], bool],
) -> Layers:
    """Layers that add the requests of one segment, from `end - 1` downwards."""
    num = min(SEGMENT, end)
    bound = np.array([[row.answer, row.memory, row.theta] for row in rows])
    slack = np.array([row.slack[end - num : end] for row in rows])
    start = np.zeros((num + 1, base.start.shape[1]), dtype=np.int64)
    start[0] = base.start[0]
    used = len(base.decode)
    room = max(FIRST_STATES, 4 * used)
    sums = np.empty((2, room), dtype=np.int64)
    sums[:, :used] = base.decode, base.peak
    done = 0
    while True:
        done = _extend(
            decode[end - num : end], peak[end - num : end], bound, slack,
            done, start, sums[0], sums[1],
        )  # fmt: skip
        if done == num:
            return Layers(start, sums[0], sums[1])
        if stop() or 2 * sums.shape[1] > MAX_STATES:
            raise StoppedError
        sums = np.concatenate([sums, np.empty_like(sums)], axis=1)


@kernel
def _extend(
    decode: Ints,
    peak: Ints,
    bound: Ints,
    slack: Ints,
    done: int,
    start: Ints,
    sum_decode: Ints,
    sum_peak: Ints,
) -> int:
    """Append a layer for each request, the last one first, while the arrays suffice.

    Fills `start` and both sums (modified in place) from layer `done` on; returns the
    last layer that is complete.
    """
    n = len(decode)
    size = start.shape[1] - 2
    while done < n:
        i = n - 1 - done
        o, w = decode[i], peak[i]
        used = start[done, size + 1]
        if used + 2 * (used - start[done, 0]) > len(sum_decode):
            return done
        for count in range(size + 1):
            start[done + 1, count] = used
            # Two sorted lists are merged: without the request, and with it.
            k, k_end = start[done, count], start[done, count + 1]
            j, j_end = k, k
            if count > 0:
                j, j_end = start[done, count - 1], start[done, count]
            while k < k_end or j < j_end:
                if j == j_end:
                    without = True
                elif k == k_end:
                    without = False
                else:
                    a, b = sum_decode[k], sum_decode[j] + o
                    without = a < b or (a == b and sum_peak[k] <= sum_peak[j] + w)
                if without:
                    x, y = sum_decode[k], sum_peak[k]
                    k += 1
                else:
                    x, y = sum_decode[j] + o, sum_peak[j] + w
                    j += 1
                if used > start[done + 1, count] and sum_peak[used - 1] <= y:
                    continue
                alive = True
                for r in range(len(bound)):
                    value = bound[r, 0] * x + bound[r, 1] * y - bound[r, 2] * count
                    if value > slack[r, i]:
                        alive = False
                        break
                if alive:
                    sum_decode[used] = x
                    sum_peak[used] = y
                    used += 1
        start[done + 1, size + 1] = used
        done += 1
    return done


@kernel
def _read(
    decode: Ints,
    peak: Ints,
    end: int,
    start: Ints,
    sum_decode: Ints,
    sum_peak: Ints,
    left: Ints,
    taken: NDArray[np.bool_],
) -> None:
    """Take each request of a segment that a complete group can contain, by rising id.

    `left` is the remaining number of requests, sum of `o`, and tokens; it and `taken`
    are modified in place.
    """
    num = len(start) - 1
    for i in range(end - num, end):
        count, answers, room = left[0] - 1, left[1] - decode[i], left[2] - peak[i]
        if count < 0:
            return
        layer = end - 1 - i
        # Of the states within the sum, the last one has the least memory.
        low, high = start[layer, count], start[layer, count + 1]
        first = low
        while low < high:
            middle = (low + high) // 2
            if sum_decode[middle] <= answers:
                low = middle + 1
            else:
                high = middle
        if low > first and sum_peak[low - 1] <= room:
            taken[i] = True
            left[0], left[1], left[2] = count, answers, room
