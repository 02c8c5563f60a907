"""The forecast as a loop over arrays: who can start so that nothing ever overflows.

A running request is forecast to make a token in each coming step. With `t` the tokens
of its prompt and answer so far, it holds in the j-th coming step `t + max(0, j - q)`
tokens, where in step `q` its prefill is complete (1 for one that already decodes), and
leaves after step `q + r - 1`, `r` being the tokens that it has yet to make. What it
holds never shrinks until it leaves, so usage is largest in steps in which somebody
leaves, and those are the ones looked at.
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


@kernel
def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)


@kernel
def _held(tokens: int, ready: int, step: int, extra: int, size: int) -> int:
    """Blocks that a request holds in a coming step."""
    return -(-(tokens + max(0, step - ready) + extra) // size)


@kernel
def _prefill_ready(left: int, first: int, cap: int, end: Ints, count: int) -> int:
    """Coming step in which `left` tokens are prefilled, from step `first` on.

    Each request of `end[:count]` that is still there takes one token of a step first.
    """
    step = first
    while True:
        decoding = 0
        for m in range(count):
            if end[m] >= step:
                decoding += 1
        if decoding >= cap:
            # Until somebody leaves there is nothing for it.
            soonest = NEVER
            for m in range(count):
                if end[m] >= step:
                    soonest = min(soonest, end[m])
            step = soonest + 1
            continue
        left -= cap - decoding
        if left <= 0:
            return step
        step += 1


@kernel
def _to_make(prefill: int, predicted: int, made: int, slots: int) -> int:
    """Tokens that a request is yet to make: at least 1, and none beyond the cache.

    One that could not run alone is never let in, so that a longer prediction is wrong.
    """
    return max(min(predicted, slots + 1 - prefill) - made, 1)


@kernel
def forecast_running(
    prefill: Ints, predicted: Ints, made: Ints, computed: Ints, running: Ints,
    slots: int, cap: int, tokens: Ints, ready: Ints, end: Ints,
) -> int:  # fmt: skip
    """Fill in what each running request is forecast to do; return a step's tokens left.

    Requests are served in order, so that one whose prefill goes on gets what those
    before and behind it, which decode, leave of a step.
    """
    left_now = cap
    count = len(running)
    for m in range(count):
        i = running[m]
        tokens[m] = prefill[i] + made[i]
        ready[m] = 1
        end[m] = _to_make(prefill[i], predicted[i], made[i], slots)
        left_now -= min(left_now, tokens[m] - computed[i])
    previous = 1
    for m in range(count):
        i = running[m]
        rest = tokens[m] - computed[i]
        if rest > 1 and cap < NEVER:
            rest_of_it = end[m]
            end[m] = 0  # it does not stand in its own way
            previous = _prefill_ready(rest, previous, cap, end, count)
            ready[m] = previous
            end[m] = previous + rest_of_it - 1
    return left_now


@kernel
def _usage_at_ends(
    tokens: Ints, ready: Ints, end: Ints, count: int, extra: int, size: int, used: Ints
) -> None:
    """Fill `used[m]` with the blocks held in step `end[m]`; `end` is ascending.

    From the last to leave to the first: after adding request `m`, those that are there
    in step `end[m]` are known by their number, the sum of their offsets and how many
    offsets fall on each residue of the block size.
    """
    residue = np.zeros(size, dtype=np.int64)
    total = 0
    all_ready = ready[:count].max() <= 1 if count else True
    for m in range(count - 1, -1, -1):
        offset = tokens[m] - ready[m] + extra
        total += offset
        residue[offset % size] += 1
        step = end[m]
        here = count - m
        padding = 0
        for r in range(size):
            padding += residue[r] * (-(r + step) % size)
        used[m] = (total + here * step + padding) // size
        for j in range(m, 0 if all_ready else count):
            if ready[j] > step:  # not ready yet, so it holds its prompt already
                offset = tokens[j] - ready[j] + extra
                used[m] += _held(tokens[j], ready[j], step, extra, size)
                used[m] -= _blocks(offset + step, size)
    for m in range(1, count):
        if end[m] == end[m - 1]:  # those that leave together see each other
            used[m] = used[m - 1]


@kernel
def _fits(
    own_tokens: int, own_ready: int, own_end: int,
    tokens: Ints, ready: Ints, end: Ints, used: Ints, count: int,
    extra: int, size: int, num_blocks: int,
) -> int:  # fmt: skip
    """How many steps to wait at least before it can start; 0 if it can now."""
    wait = 0
    for m in range(count):
        if end[m] > own_end:
            break
        own = _held(own_tokens, own_ready, end[m], extra, size)
        room = num_blocks - used[m]
        if own > room:
            # Later, it holds less in that step; or it starts after it.
            least = own_tokens + max(0, end[m] - own_ready) + extra - room * size
            wait = max(wait, min(end[m], max(least, 1)))
    at_end = _held(own_tokens, own_ready, own_end, extra, size)
    for m in range(count):
        if end[m] >= own_end:
            at_end += _held(tokens[m], ready[m], own_end, extra, size)
    if at_end > num_blocks:
        wait = max(wait, 1)
    return wait


@kernel
def _insert(
    own_tokens: int, own_ready: int, own_end: int,
    tokens: Ints, ready: Ints, end: Ints, used: Ints, count: int, extra: int, size: int,
) -> None:  # fmt: skip
    """Add a request to the arrays, which stay sorted by `end`."""
    at_end = _held(own_tokens, own_ready, own_end, extra, size)
    for m in range(count):
        if end[m] <= own_end:
            used[m] += _held(own_tokens, own_ready, end[m], extra, size)
        if end[m] >= own_end:
            at_end += _held(tokens[m], ready[m], own_end, extra, size)
    m = count
    while m > 0 and end[m - 1] > own_end:
        tokens[m], ready[m], end[m] = tokens[m - 1], ready[m - 1], end[m - 1]
        used[m] = used[m - 1]
        m -= 1
    tokens[m], ready[m], end[m], used[m] = own_tokens, own_ready, own_end, at_end


@kernel
def look_ahead(
    prefill: Ints, predicted: Ints, made: Ints, computed: Ints,
    running: Ints, candidates: Ints, backfill: int,
    size: int, num_blocks: int, extra: int, max_seqs: int, cap: int, chunked: bool,
    started: Ints, wait: Ints,
) -> int:  # fmt: skip
    """Choose among `candidates`, in order, who starts in the coming step.

    `prefill`, `predicted`, `made` and `computed` are by request. Up to `backfill`
    candidates may be passed over. `started` names the chosen; `wait[c]`
    is how many steps candidate `c` has to wait at the least if nothing unforeseen
    happens, 0 for the chosen. Returns how many are chosen.
    """
    count, room = len(running), len(running) + len(candidates)
    tokens = np.empty(room, dtype=np.int64)
    ready = np.empty(room, dtype=np.int64)
    end = np.empty(room, dtype=np.int64)
    used = np.empty(room, dtype=np.int64)
    slots = num_blocks * size - extra
    left_now = forecast_running(
        prefill, predicted, made, computed, running, slots, cap, tokens, ready, end
    )
    by_end = np.argsort(end[:count])
    tokens[:count] = tokens[:count][by_end]
    ready[:count] = ready[:count][by_end]
    end[:count] = end[:count][by_end]
    _usage_at_ends(tokens, ready, end, count, extra, size, used)
    chosen = passed = 0
    for c in range(len(candidates)):
        i = candidates[c]
        if passed > backfill or count >= max_seqs or left_now <= 0:
            wait[c] = 1
            continue
        own_tokens = prefill[i] + made[i]
        own_left = _to_make(prefill[i], predicted[i], made[i], slots)
        own_ready = 1
        if own_tokens > left_now:
            if not chunked:
                wait[c] = 1
                passed += 1
                continue
            own_ready = _prefill_ready(own_tokens - left_now, 2, cap, end, count)
        own_end = own_ready + own_left - 1
        wait[c] = _fits(
            own_tokens, own_ready, own_end, tokens, ready, end, used, count,
            extra, size, num_blocks,
        )  # fmt: skip
        if wait[c] > 0:
            passed += 1
            if own_ready > 1:  # how long its prefill takes may change
                wait[c] = 1
            continue
        _insert(
            own_tokens, own_ready, own_end, tokens, ready, end, used, count, extra, size
        )
        count += 1
        left_now -= min(left_now, own_tokens)
        started[chosen] = i
        chosen += 1
    return chosen
