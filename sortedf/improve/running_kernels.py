"""Running requests: completions, ascending, and the KV held in those steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.improve.guide_kernels import ARRIVAL, DECODE, FAR, PREFILL
from sortedf.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@kernel
def copy_entries(source: Ints, first: int, target: Ints, at: int, count: int) -> None:
    """Copy `count` entries from `first` on to the positions from `at` on.

    A loop, since numba takes seconds to compile the assignment of a slice.
    """
    for m in range(count):
        target[at + m] = source[first + m]


@kernel
def first_above(end: Ints, count: int, step: int) -> int:
    """Index of the first of the sorted `end[:count]` that is > step."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if end[middle] <= step:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def drop_completed(end: Ints, used: Ints, count: int, clock: int) -> int:
    """Drop requests completed by `clock`; return the new count."""
    gone = first_above(end, count, clock)
    if gone:
        for k in range(gone, count):
            end[k - gone] = end[k]
            used[k - gone] = used[k]
    return count - gone


@kernel
def measure_room(budget: int, end: Ints, used: Ints, count: int, room: Ints) -> None:
    """Fill `room`: a request started at `t` fits at `end[k]` iff `s <= room[k] + t`.

    At `end[k]` it would hold `s + end[k] - t`. With blocks that is rounded up, but the
    free memory is whole blocks, so the comparison is the same.
    """
    least = FAR
    for k in range(count):
        least = min(least, budget - used[k] - end[k])
        room[k] = least


@kernel
def _others_at(block: int, end: Ints, used: Ints, count: int, k: int, step: int) -> int:
    """KV held in `step` by the requests that complete later, `end[k:count]`.

    With blocks it is an upper limit: each has grown by the whole blocks in between.
    """
    if k == count:
        return 0
    grown = (end[k] - step) // block * block
    return int(used[k] - (count - k) * grown)


@kernel
def wait_of(
    request: Ints,
    budget: int,
    block: int,
    i: int,
    t: int,
    end: Ints,
    used: Ints,
    count: int,
    room: Ints,
) -> int:
    """Return a lower bound on the steps until `i` fits; 0 if it fits now."""
    if request[i, ARRIVAL] > t:
        return int(request[i, ARRIVAL] - t)
    s, own_end = request[i, PREFILL], t + request[i, DECODE]
    if count and end[0] <= own_end and s > room[0] + t:
        return int(s - room[0] - t)
    k = first_above(end, count, own_end)
    if k > 0 and s > room[k - 1] + t:
        return int(s - room[k - 1] - t)
    others = _others_at(block, end, used, count, k, own_end)
    if others - (-(s + request[i, DECODE]) // block * block) > budget:
        return FAR
    return 0


@kernel
def insert_running(
    block: int, s: int, o: int, t: int, end: Ints, used: Ints, count: int
) -> None:
    """Start a request at `t` among the `count` running ones."""
    k = first_above(end, count, t + o)
    others = _others_at(block, end, used, count, k, t + o)
    if k > 0 and end[k - 1] == t + o:
        others = used[k - 1]  # those that complete in the same step still hold their KV
    for j in range(k):
        used[j] -= -(s + end[j] - t) // block * block
    for j in range(count, k, -1):
        end[j] = end[j - 1]
        used[j] = used[j - 1]
    end[k] = t + o
    used[k] = others - (-(s + o) // block * block)
