"""Jitted loops of placement.

Running requests are kept in three arrays, sorted by completion, valid in `low:high`:
`end`, the step of completion; `used`, the KV held by all running requests in that
step; `offset`, `s - p`, so that a request holds `offset + t` tokens in step `t`.

Where prompts share prefixes, `used`, `offset` and prompts are of requests' own blocks
alone, and there are two more arrays: `shared`, the tokens of the nodes held in step
`end`, and by node `hold`, the last step in which a running request holds it. All
running requests have started, so a node is held from now to its `hold`. A later start
adds in step `t` the tokens of the nodes of its path with `hold < t`. A node's `hold` is
at least that of every node below it, so these are the last ones of the path, and more
of them the later `t`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NEVER = 2**62
"""A step that no schedule reaches."""


@kernel
def _round_up(tokens: int, block: int) -> int:
    return tokens if block == 1 else -(-tokens // block) * block


@kernel
def _first_at_or_after(end: Ints, low: int, high: int, step: int) -> int:
    """Index of the first of the sorted `end[low:high]` that is >= step."""
    while low < high:
        middle = (low + high) // 2
        if end[middle] < step:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _used_at(
    end: Ints, offset: Ints, used: Ints, low: int, high: int, block: int, step: int
) -> int:
    """KV held in `step` by the running requests; none of them starts at `step`.

    Everything in `low:high` has `end >= step`, so until `end[low]` none completes and
    usage with `block == 1` rises by one token a request and step.
    """
    if low == high:
        return 0
    if block == 1:
        return int(used[low] - (high - low) * (end[low] - step))
    total = 0
    for k in range(low, high):
        total += _round_up(offset[k] + step, block)
    return total


@kernel
def _earliest(
    step: int,
    s: int,
    o: int,
    end: Ints,
    offset: Ints,
    used: Ints,
    low: int,
    high: int,
    budget: int,
    block: int,
    max_seqs: int,
    max_tokens: int,
    now: int,
    started_now: int,
    prompt_tokens_now: int,
) -> int:
    """First step >= `step` in which a request could start beside the running ones.

    `end[low:high]` are the completions of the running requests in ascending order,
    `used` the KV held in those steps, `offset` is `s - p`. Every pass raises the step
    to a value below which some constraint is violated, so no feasible step is skipped.
    """
    while True:
        low = _first_at_or_after(end, low, high, step + 1)
        running = high - low
        if running >= max_seqs:
            step = end[high - max_seqs]
            continue
        if step == now and started_now > 0:
            if running - started_now + prompt_tokens_now + s > max_tokens:
                step += 1
                continue
        elif running + s > max_tokens:
            step = end[high - (max_tokens - s) - 1]
            continue
        need = step
        k = low
        while k < high and end[k] <= step + o:
            # At completion k the request would hold s + end[k] - step.
            if used[k] + _round_up(s + end[k] - step, block) > budget:
                need = max(need, min(end[k], s + end[k] - (budget - used[k])))
            k += 1
        k = _first_at_or_after(end, low, high, step + o)
        own = _used_at(end, offset, used, k, high, block, step + o)
        if own + _round_up(s + o, block) > budget:
            # Usage rises until the next completion: end after it.
            need = max(need, end[k] + 1 - o)
        if need == step:
            return step
        step = need


@kernel
def _insert(
    step: int,
    s: int,
    o: int,
    end: Ints,
    offset: Ints,
    used: Ints,
    low: int,
    high: int,
    block: int,
) -> None:
    """Add a request that runs from `step`; the arrays have room at `high`."""
    own_end = step + o
    k = _first_at_or_after(end, low, high, own_end)
    own = _used_at(end, offset, used, k, high, block, own_end)
    for j in range(low, k):
        used[j] += _round_up(s + end[j] - step, block)
    for j in range(high, k, -1):
        end[j] = end[j - 1]
        offset[j] = offset[j - 1]
        used[j] = used[j - 1]
    end[k] = own_end
    offset[k] = s - step
    used[k] = own + _round_up(s + o, block)
    # The new request also counts for others that complete in the same step.
    j = k + 1
    while j <= high and end[j] == own_end:
        used[j] = used[k]
        j += 1


@kernel
def _push(heap: Ints, size: int, rank: int) -> None:
    """Add `rank` to the binary heap `heap[:size]`."""
    k = size
    while k > 0 and heap[(k - 1) // 2] > rank:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = rank


@kernel
def _pop(heap: Ints, size: int) -> int:
    """Remove and return the smallest rank of the binary heap `heap[:size]`."""
    smallest = heap[0]
    last = heap[size - 1]
    k = 0
    child = 1
    while child < size - 1:
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[k] = heap[child]
        k = child
        child = 2 * k + 1
    heap[k] = last
    return int(smallest)


@kernel
def _arrive(
    now: int,
    arrival: Ints,
    by_arrival: Ints,
    num_arrived: int,
    window: Ints,
    num_window: int,
    width: int,
    heap: Ints,
    num_heap: int,
) -> tuple[int, int, int]:
    """Queue every rank that has arrived by `now`; return the three new counts."""
    while num_arrived < len(arrival) and arrival[by_arrival[num_arrived]] <= now:
        rank = by_arrival[num_arrived]
        num_arrived += 1
        if num_window > 0 and rank < window[num_window - 1]:
            k = num_window
            while k > 0 and window[k - 1] > rank:
                window[k] = window[k - 1]
                k -= 1
            window[k] = rank
            num_window += 1
            if num_window <= width:
                continue
            num_window -= 1
            rank = window[num_window]
        _push(heap, num_heap, rank)
        num_heap += 1
    return num_arrived, num_window, num_heap


@kernel
def _move_to_front(end: Ints, offset: Ints, used: Ints, low: int, high: int) -> int:
    """Shift `low:high` to the front of the three arrays; return the new `high`."""
    for j in range(low, high):
        end[j - low] = end[j]
        offset[j - low] = offset[j]
        used[j - low] = used[j]
    return high - low


@kernel
def place_ranked(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    by_arrival: Ints,
    budget: int,
    block: int,
    max_seqs: int,
    max_tokens: int,
    backfill: int,
    start: Ints,
) -> None:
    """Fill `start` by the rule of `sortedf.placement`; all arrays are by rank.

    The window holds the first `backfill + 1` arrived, waiting ranks in ascending
    order, the heap the rest; before `not_before[r]` rank `r` cannot start.
    """
    n = len(prefill)
    width = backfill + 1
    room = min(n, budget // 2, max_seqs) + 1  # a request holds 2 tokens or more
    end = np.empty(2 * room, dtype=np.int64)
    offset = np.empty(2 * room, dtype=np.int64)
    used = np.empty(2 * room, dtype=np.int64)
    window = np.empty(width + 1, dtype=np.int64)
    heap = np.empty(n, dtype=np.int64)
    not_before = np.zeros(n, dtype=np.int64)
    low = high = num_window = num_heap = num_arrived = num_started = now = 0
    while num_started < n:
        num_arrived, num_window, num_heap = _arrive(
            now, arrival, by_arrival, num_arrived,
            window, num_window, width, heap, num_heap,
        )  # fmt: skip
        low = _first_at_or_after(end, low, high, now + 1)
        started_now = prompt_tokens_now = k = 0
        while True:
            if k == num_window:
                if num_heap == 0 or num_window == width:
                    break
                window[k] = _pop(heap, num_heap)
                num_heap -= 1
                num_window += 1
            rank = window[k]
            if not_before[rank] <= now:
                not_before[rank] = _earliest(
                    now, prefill[rank], decode[rank], end, offset, used, low, high,
                    budget, block, max_seqs, max_tokens,
                    now, started_now, prompt_tokens_now,
                )  # fmt: skip
            if not_before[rank] > now:
                k += 1
                continue
            if high == len(end):
                high = _move_to_front(end, offset, used, low, high)
                low = 0
            _insert(
                now, prefill[rank], decode[rank], end, offset, used, low, high, block
            )
            high += 1
            start[rank] = now
            num_started += 1
            started_now += 1
            prompt_tokens_now += prefill[rank]
            num_window -= 1
            for j in range(k, num_window):
                window[j] = window[j + 1]
        now = arrival[by_arrival[num_arrived]] if num_arrived < n else NEVER
        for j in range(num_window):
            now = min(now, not_before[window[j]])


# The next two repeat `_earliest` and `_insert` with the nodes of shared prefixes. One
# body with an empty forest for both would make placing without prefixes, where most of
# the searches spend their time, take 1.3 to 1.6 times as long.


@kernel
def _earliest_shared(
    step: int,
    s: int,
    o: int,
    leaf: int,
    end: Ints,
    offset: Ints,
    used: Ints,
    shared: Ints,
    low: int,
    high: int,
    parent: Ints,
    size: Ints,
    hold: Ints,
    budget: int,
    block: int,
    max_seqs: int,
) -> int:
    """First step >= `step` in which a request could start beside the running ones.

    Every pass raises the step to a value below which some constraint is violated, so no
    feasible step is skipped.
    """
    while True:
        low = _first_at_or_after(end, low, high, step + 1)
        if high - low >= max_seqs:
            step = end[high - max_seqs]
            continue
        need = step
        node = leaf
        extra = 0
        k = low
        while k < high and end[k] <= step + o:
            while node >= 0 and hold[node] < end[k]:
                extra += size[node]
                node = parent[node]
            room = budget - used[k] - shared[k] - extra
            if _round_up(s + end[k] - step, block) > room:
                need = max(need, min(end[k], s + end[k] - room))
            k += 1
        k = _first_at_or_after(end, low, high, step + o)
        total = _used_at(end, offset, used, k, high, block, step + o)
        if k < high:
            total += shared[k]
        while node >= 0 and hold[node] < step + o:
            extra += size[node]
            node = parent[node]
        if total + extra + _round_up(s + o, block) > budget:
            # Usage rises until the next completion: end after it.
            need = max(need, end[k] + 1 - o)
        if need == step:
            return step
        step = need


@kernel
def _insert_shared(
    step: int,
    s: int,
    o: int,
    leaf: int,
    end: Ints,
    offset: Ints,
    used: Ints,
    shared: Ints,
    low: int,
    high: int,
    parent: Ints,
    size: Ints,
    hold: Ints,
    block: int,
) -> None:
    """Add a request that runs from `step`; the arrays have room at `high`."""
    own_end = step + o
    k = _first_at_or_after(end, low, high, own_end)
    total = _used_at(end, offset, used, k, high, block, own_end)
    there = shared[k] if k < high else 0
    node = leaf
    extra = 0
    for j in range(low, k):
        while node >= 0 and hold[node] < end[j]:
            extra += size[node]
            node = parent[node]
        used[j] += _round_up(s + end[j] - step, block)
        shared[j] += extra
    while node >= 0 and hold[node] < own_end:
        extra += size[node]
        node = parent[node]
    for j in range(high, k, -1):
        end[j] = end[j - 1]
        offset[j] = offset[j - 1]
        used[j] = used[j - 1]
        shared[j] = shared[j - 1]
    end[k] = own_end
    offset[k] = s - step
    used[k] = total + _round_up(s + o, block)
    shared[k] = there + extra
    # The new request also counts for others that complete in the same step.
    j = k + 1
    while j <= high and end[j] == own_end:
        used[j] = used[k]
        shared[j] = shared[k]
        j += 1
    node = leaf
    while node >= 0 and hold[node] < own_end:
        hold[node] = own_end
        node = parent[node]


@kernel
def place_shared(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    by_arrival: Ints,
    leaf: Ints,
    parent: Ints,
    size: Ints,
    budget: int,
    block: int,
    max_seqs: int,
    backfill: int,
    stop_above: int,
    start: Ints,
) -> int:
    """Fill `start` by the rule of `sortedf.placement`; arrays of requests are by rank.

    `prefill` is of requests' own tokens, `size` the tokens of each node. The window
    holds the first `backfill + 1` arrived, waiting ranks in ascending order; before
    `not_before[r]` rank `r` cannot start: a start adds to the usage of every step, also
    where others hold the same prefix, so it never lets another start earlier.

    Returns
    -------
    int
        Sum of all completions less arrivals, or `NEVER` as soon as it is above
        `stop_above`.
    """
    n = len(prefill)
    width = backfill + 1
    room = min(n, max_seqs) + 1
    end = np.empty(2 * room, dtype=np.int64)
    offset = np.empty(2 * room, dtype=np.int64)
    used = np.empty(2 * room, dtype=np.int64)
    shared = np.empty(2 * room, dtype=np.int64)
    hold = np.zeros(len(parent), dtype=np.int64)
    window = np.empty(width + 1, dtype=np.int64)
    heap = np.empty(n, dtype=np.int64)
    not_before = np.zeros(n, dtype=np.int64)
    low = high = num_window = num_heap = num_arrived = num_started = now = total = 0
    left = 0
    for r in range(n):
        left += decode[r] - arrival[r]
    while num_started < n:
        num_arrived, num_window, num_heap = _arrive(
            now, arrival, by_arrival, num_arrived,
            window, num_window, width, heap, num_heap,
        )  # fmt: skip
        low = _first_at_or_after(end, low, high, now + 1)
        k = 0
        while True:
            if k == num_window:
                if num_heap == 0 or num_window == width:
                    break
                window[k] = _pop(heap, num_heap)
                not_before[window[k]] = 0
                num_heap -= 1
                num_window += 1
            rank = window[k]
            if not_before[rank] <= now:
                not_before[rank] = _earliest_shared(
                    now, prefill[rank], decode[rank], leaf[rank], end, offset, used,
                    shared, low, high, parent, size, hold, budget, block, max_seqs,
                )  # fmt: skip
            if not_before[rank] > now:
                k += 1
                continue
            if high == len(end):
                for j in range(low, high):
                    shared[j - low] = shared[j]
                high = _move_to_front(end, offset, used, low, high)
                low = 0
            _insert_shared(
                now, prefill[rank], decode[rank], leaf[rank], end, offset, used, shared,
                low, high, parent, size, hold, block,
            )  # fmt: skip
            high += 1
            start[rank] = now
            total += now
            num_started += 1
            num_window -= 1
            for j in range(k, num_window):
                window[j] = window[j + 1]
        if total + left + (n - num_started) * (now + 1) > stop_above:
            return NEVER
        now = arrival[by_arrival[num_arrived]] if num_arrived < n else NEVER
        for j in range(num_window):
            now = min(now, not_before[window[j]])
    return total + left
