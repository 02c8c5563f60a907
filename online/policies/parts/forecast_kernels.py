"""The forecast as a loop over arrays: requests that can start without overflow later.

A running request is forecast to make a token in each coming step. With `t` the tokens
of its prompt and answer so far, it holds in the j-th coming step `t + max(0, j - q)`
tokens, where in step `q` its prefill is complete (1 for one that already decodes), and
completes after step `q + r - 1`, `r` being its remaining tokens. Its KV never shrinks
until then, so usage is largest in steps in which a request completes, and only those
are checked.

With prefix caching, blocks that several requests hold are in the cache once: they count
for the one of them that completes last. `leaf`, `parent` and `depth` are those of the
engine's `PrefixForest`, and `last` is the step in which the last holder of each node
completes, 0 if none holds it. Without prefix caching `leaf` is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NEVER = 2**62
"""A step that is never reached."""

TRIES = 16
"""Start steps that are tried for one request; each can save decisions in between."""


@kernel
def _blocks(tokens: int, size: int, shift: int) -> int:
    """Blocks of `size` for so many tokens; a shift is much faster than `//`."""
    if shift >= 0:
        return (tokens + size - 1) >> shift
    return -(-tokens // size)


@kernel
def _held(tokens: int, ready: int, step: int, extra: int, size: int, shift: int) -> int:
    """Blocks that a request holds in a coming step."""
    return _blocks(tokens + max(0, step - ready) + extra, size, shift)


@kernel
def _finish_prefills(
    rest: Ints, where: Ints, done: Ints, num_prefills: int, cap: int, most: int,
    ready: Ints, end: Ints, count: int,
) -> None:  # fmt: skip
    """Fill `done[p]` with the coming step in which prefill `p` is complete.

    Prefills are in the engine's order, with `rest[p]` tokens after the next step. A
    step gives one token to each request that decodes, then to each prefill at most
    `most` of those left. Forecasts at `where[p]` are completed: until then `ready` is
    `NEVER` and `end` the number of tokens to make. There is none for -1.
    """
    left = rest[:num_prefills].copy()
    unfinished = 0
    for p in range(num_prefills):
        done[p] = 1 if left[p] == 0 else NEVER
        unfinished += left[p] > 0
    step = 2
    while unfinished > 0:
        tokens, soonest = cap, NEVER
        for m in range(count):
            if ready[m] < step <= end[m]:
                tokens -= 1
                soonest = min(soonest, end[m])
        if tokens <= 0:  # none are left until a request completes
            step = soonest + 1
            continue
        for p in range(num_prefills):
            new = min(left[p], most, tokens)
            tokens -= new
            left[p] -= new
            if left[p] == 0 and done[p] == NEVER:
                done[p] = step
                unfinished -= 1
                if where[p] >= 0:
                    ready[where[p]] = step
                    end[where[p]] += step - 1
        step += 1


@kernel
def _to_make(prefill: int, predicted: int, output_tokens: int, slots: int) -> int:
    """Return a request's remaining tokens: at least 1, and within the cache.

    Requests that cannot run alone are never admitted, so a longer prediction is wrong.
    """
    return max(min(predicted, slots + 1 - prefill) - output_tokens, 1)


@kernel
def _forecast_running(
    prefill: Ints, predicted: Ints, output_tokens: Ints, computed: Ints, running: Ints,
    slots: int, cap: int, most: int, tokens: Ints, ready: Ints, end: Ints,
    rest: Ints, where: Ints, done: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Fill in the forecast of each running request.

    `rest` gets what the next step leaves of each prefill that it does not complete.
    Returns the next step's unused tokens and the number of these prefills.
    """
    left_now, num_prefills = cap, 0
    for m in range(len(running)):
        i = running[m]
        tokens[m] = prefill[i] + output_tokens[i]
        ready[m] = 1
        end[m] = _to_make(prefill[i], predicted[i], output_tokens[i], slots)
        left = tokens[m] - computed[i]
        new = min(left, most, left_now)
        left_now -= new
        if left > max(new, 1):  # one that decodes gets its token from any step
            ready[m] = NEVER
            rest[num_prefills], where[num_prefills] = left - new, m
            num_prefills += 1
    _finish_prefills(
        rest, where, done, num_prefills, cap, most, ready, end, len(running)
    )
    where[:num_prefills] = -1  # the order of forecasts changes
    return left_now, num_prefills


@kernel
def _sort_by_end(tokens: Ints, ready: Ints, end: Ints, node: Ints, count: int) -> None:
    """Sort the four arrays by `end`, digit by digit from the last one.

    As fast as `argsort` for as many requests as an engine runs, and compiles in half
    the time.
    """
    order, moved, was_tokens, was_ready, was_end, was_node = np.empty(
        (6, count), dtype=np.int64
    )
    largest = 0
    for m in range(count):
        order[m] = m
        was_tokens[m], was_ready[m], was_end[m] = tokens[m], ready[m], end[m]
        was_node[m] = node[m]
        largest = max(largest, end[m])
    first = np.empty(257, dtype=np.int64)  # position of the first with a digit
    digit = 0
    while largest >> digit > 0:
        for c in range(257):
            first[c] = 0
        for m in range(count):
            first[1 + (end[m] >> digit & 255)] += 1
        for c in range(256):
            first[c + 1] += first[c]
        for m in range(count):
            c = was_end[order[m]] >> digit & 255
            moved[first[c]] = order[m]
            first[c] += 1
        order, moved = moved, order
        digit += 8
    for m in range(count):
        i = order[m]
        tokens[m], ready[m], end[m] = was_tokens[i], was_ready[i], was_end[i]
        node[m] = was_node[i]


@kernel
def _hold(node: int, end: int, parent: Ints, last: Ints) -> int:
    """Hold a node and its ancestors until a step; return the first held for longer."""
    while node >= 0 and last[node] < end:
        last[node] = end
        node = parent[node]
    return node


@kernel
def _shared_at_ends(
    end: Ints, node: Ints, count: int, parent: Ints, depth: Ints, last: Ints,
    shared: Ints,
) -> None:  # fmt: skip
    """Fill `shared[m]` with the blocks held in step `end[m]` that would count twice.

    `end` is ascending, `node[m]` the deepest node of the forest that request `m` holds.
    """
    total = 0
    for m in range(count - 1, -1, -1):
        longer = _hold(node[m], end[m], parent, last)
        if longer >= 0:
            total += depth[longer]
        shared[m] = total
    for m in range(1, count):
        if end[m] == end[m - 1]:  # requests that complete in the same step share
            shared[m] = shared[m - 1]


@kernel
def _held_by_others(
    node: int, most: int, step: int, parent: Ints, depth: Ints, last: Ints
) -> tuple[int, int]:
    """Blocks among a request's `most` first that others hold in a step, and their node.

    For a later step the search can begin with that node.
    """
    while node >= 0 and last[node] < step:
        node = parent[node]
    return (min(depth[node], most) if node >= 0 else 0), node


@kernel
def _usage_at_ends(
    tokens: Ints, ready: Ints, end: Ints, count: int,
    extra: int, size: int, shift: int, shared: Ints, used: Ints,
) -> None:  # fmt: skip
    """Fill `used[m]` with the blocks held in step `end[m]`; `end` is ascending.

    From the last to complete to the first: after adding request `m`, usage in step
    `end[m]` follows from the number of requests added, the sum of their offsets and,
    for each residue `c` of a step by the block size, the empty slots of their last
    blocks, `padding[c]`.
    """
    padding = np.zeros(size, dtype=np.int64)
    empty = np.zeros(2 * size, dtype=np.int64)  # of a last block, by tokens held
    for c in range(1, size):
        empty[c] = empty[c + size] = size - c
    total = 0
    all_ready = True
    for m in range(count):
        all_ready &= ready[m] <= 1
    for m in range(count - 1, -1, -1):
        offset = tokens[m] - ready[m] + extra
        total += offset
        first = offset & (size - 1) if shift >= 0 else offset % size
        for c in range(size):
            padding[c] += empty[first + c]
        step = end[m]
        residue = step & (size - 1) if shift >= 0 else step % size
        slots = total + (count - m) * step + padding[residue]
        used[m] = slots >> shift if shift >= 0 else slots // size
        for j in range(m, 0 if all_ready else count):
            if ready[j] > step:  # not ready yet, so it holds its prompt already
                offset = tokens[j] - ready[j] + extra
                used[m] += _held(tokens[j], ready[j], step, extra, size, shift)
                used[m] -= _blocks(offset + step, size, shift)
        used[m] -= shared[m]
    for m in range(1, count):
        if end[m] == end[m - 1]:  # requests that complete in the same step share
            used[m] = used[m - 1]


@kernel
def _used_then(
    step: int, tokens: Ints, ready: Ints, end: Ints, shared: Ints, count: int,
    extra: int, size: int, shift: int,
) -> tuple[int, int]:  # fmt: skip
    """Blocks held in a step, and the number of blocks saved in it by sharing."""
    held = twice = 0
    for m in range(count - 1, -1, -1):
        if end[m] < step:
            break
        held += _held(tokens[m], ready[m], step, extra, size, shift)
        twice = shared[m]
    return held - twice, twice


@kernel
def _fits(
    own_tokens: int, first: int, own_ready: int, own_end: int, own_node: int,
    tokens: Ints, ready: Ints, end: Ints, used: Ints, shared: Ints, count: int,
    parent: Ints, depth: Ints, last: Ints,
    extra: int, size: int, shift: int, num_blocks: int,
) -> int:  # fmt: skip
    """Lower bound on the steps after `first` until it can start; 0 if it fits now.

    From its start on it holds its whole prompt, however long the prefill takes.
    """
    wait = 0
    node, most = own_node, (own_tokens - 1) // size
    for m in range(count):
        if end[m] > own_end:
            break
        if end[m] < first:
            continue
        others, node = _held_by_others(node, most, end[m], parent, depth, last)
        own = _held(own_tokens, own_ready, end[m], extra, size, shift)
        room = num_blocks - used[m] + others
        if own > room:
            # If it starts later it holds less in that step, or starts after it.
            grown = max(0, end[m] - own_ready)
            least = own_tokens + grown + extra - room * size
            wait = max(wait, min(end[m] - first + 1, max(least, 1)))
    others, node = _held_by_others(node, most, own_end, parent, depth, last)
    own = _held(own_tokens, own_ready, own_end, extra, size, shift) - others
    at_end, _ = _used_then(
        own_end, tokens, ready, end, shared, count, extra, size, shift
    )
    if at_end + own > num_blocks:
        wait = max(wait, 1)
    return wait


@kernel
def _least_wait(
    own_tokens: int, own_left: int, own_node: int,
    tokens: Ints, ready: Ints, end: Ints, used: Ints, shared: Ints, count: int,
    parent: Ints, depth: Ints, last: Ints,
    extra: int, size: int, shift: int, num_blocks: int,
) -> int:  # fmt: skip
    """Fewest steps after which it fits if no other starts; 0 if it fits now.

    A lower bound if finding them takes many tries.
    """
    delay = 0
    for _ in range(TRIES):
        more = _fits(
            own_tokens, 1 + delay, 1 + delay, own_left + delay, own_node,
            tokens, ready, end, used, shared, count, parent, depth, last,
            extra, size, shift, num_blocks,
        )  # fmt: skip
        if more == 0:
            break
        delay += more
    return delay


@kernel
def _insert(
    own_tokens: int, own_ready: int, own_end: int, own_node: int,
    tokens: Ints, ready: Ints, end: Ints, used: Ints, shared: Ints, count: int,
    parent: Ints, depth: Ints, last: Ints,
    extra: int, size: int, shift: int,
) -> None:  # fmt: skip
    """Add a request to the arrays, which stay sorted by `end`."""
    at_end, twice = _used_then(
        own_end, tokens, ready, end, shared, count, extra, size, shift
    )
    node, most = own_node, (own_tokens - 1) // size
    for m in range(count):
        if end[m] > own_end:
            break
        others, node = _held_by_others(node, most, end[m], parent, depth, last)
        used[m] += _held(own_tokens, own_ready, end[m], extra, size, shift) - others
        shared[m] += others
    others, node = _held_by_others(node, most, own_end, parent, depth, last)
    own = _held(own_tokens, own_ready, own_end, extra, size, shift) - others
    m = count
    while m > 0 and end[m - 1] > own_end:
        tokens[m], ready[m], end[m] = tokens[m - 1], ready[m - 1], end[m - 1]
        used[m], shared[m] = used[m - 1], shared[m - 1]
        m -= 1
    tokens[m], ready[m], end[m] = own_tokens, own_ready, own_end
    used[m], shared[m] = at_end + own, twice + others
    if own_node >= 0:
        is_copy = depth[own_node] > most and last[own_node] > 0
        _hold(parent[own_node] if is_copy else own_node, own_end, parent, last)


@kernel
def look_ahead(
    prefill: Ints, predicted: Ints, output_tokens: Ints, computed: Ints,
    running: Ints, candidates: Ints, backfill: int,
    leaf: Ints, parent: Ints, depth: Ints, found: Ints,
    size: int, shift: int, num_blocks: int, extra: int, max_seqs: int, cap: int,
    most_new: int, chunked: bool, started: Ints, wait: Ints,
) -> int:  # fmt: skip
    """Choose among `candidates`, in order, those that start in the coming step.

    `prefill`, `predicted`, `output_tokens` and `computed` are by request, `found` by
    candidate: its tokens that are cached now. `shift` is the binary logarithm of
    `size`, -1 if that is not an integer; `most_new` limits the tokens of one request
    in a step. Up to `backfill` candidates may be passed over. `started` gets the ids
    of the chosen; `wait[c]` is a lower bound on the steps that candidate `c` has to
    wait if all goes as forecast, 0 for the chosen. Returns the number chosen.
    """
    count, room = len(running), len(running) + len(candidates)
    tokens, ready, end, used, shared, node = np.empty((6, room), dtype=np.int64)
    rest, where, done = np.empty((3, room), dtype=np.int64)
    last = np.zeros(len(parent), dtype=np.int64)
    slots = num_blocks * size - extra
    left_now, num_prefills = _forecast_running(
        prefill, predicted, output_tokens, computed, running, slots, cap, most_new,
        tokens, ready, end, rest, where, done,
    )  # fmt: skip
    foreseen = NEVER
    for m in range(count):
        i = running[m]
        if output_tokens[i] < min(predicted[i], slots + 1 - prefill[i]):
            foreseen = min(foreseen, end[m])
        node[m] = leaf[i] if i < len(leaf) else -1
    _sort_by_end(tokens, ready, end, node, count)
    _shared_at_ends(end, node, count, parent, depth, last, shared)
    _usage_at_ends(tokens, ready, end, count, extra, size, shift, shared, used)
    chosen = passed = 0
    for c in range(len(candidates)):
        i = candidates[c]
        if passed > backfill or left_now <= 0:
            wait[c] = 1
            continue
        if count >= max_seqs:
            wait[c] = end[0]  # until the first of them completes
            continue
        own_tokens = prefill[i] + output_tokens[i]
        own_left = _to_make(prefill[i], predicted[i], output_tokens[i], slots)
        own_node = leaf[i] if i < len(leaf) else -1
        most = (own_tokens - 1) // size
        now, _ = _held_by_others(own_node, most, 1, parent, depth, last)
        to_compute = own_tokens - max(found[c], now * size)
        new = min(to_compute, most_new)
        if new > left_now and not chunked:
            own_ready, wait[c] = 1, 1
        elif to_compute <= min(new, left_now):
            own_ready = 1
            wait[c] = _least_wait(
                own_tokens, own_left, own_node,
                tokens, ready, end, used, shared, count, parent, depth, last,
                extra, size, shift, num_blocks,
            )  # fmt: skip
        else:
            new = min(new, left_now)
            rest[num_prefills], where[num_prefills] = to_compute - new, -1
            _finish_prefills(
                rest, where, done, num_prefills + 1, cap, most_new, ready, end, count
            )
            own_ready = done[num_prefills]
            fits = _fits(
                own_tokens, 1, own_ready, own_ready + own_left - 1, own_node,
                tokens, ready, end, used, shared, count, parent, depth, last,
                extra, size, shift, num_blocks,
            ) == 0  # fmt: skip
            # Otherwise decide again: the length of its prefill may change.
            wait[c] = 0 if fits else 1
        if wait[c] > 0:
            passed += 1
            if count > 0 and end[0] == 1:
                own = _held(own_tokens, own_ready, 1, extra, size, shift)
                if own - now > num_blocks - used[0]:
                    # It cannot fit before a request completes. A request that has
                    # outlived its length is forecast to complete in each next step.
                    wait[c] = max(wait[c], foreseen)
            continue
        own_end = own_ready + own_left - 1
        _insert(
            own_tokens, own_ready, own_end, own_node,
            tokens, ready, end, used, shared, count, parent, depth, last,
            extra, size, shift,
        )  # fmt: skip
        count += 1
        num_prefills += own_ready > 1
        foreseen = min(foreseen, own_end)
        left_now -= new
        if own_node >= 0:
            for other in range(c):  # those passed over may share with it
                wait[other] = min(wait[other], 1)
        started[chosen] = i
        chosen += 1
    return chosen
