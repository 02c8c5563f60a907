"""The plan of an order of requests on an engine: the loop over steps.

Requests are admitted in the given order, each as soon as the blocks that it holds up to
its last token fit beside the running requests. So no request is ever evicted, and its
completion is known at its admission. While a prompt is computed in chunks no other can
start, since it takes the remaining tokens of each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

# Entries of the array of rules.
BLOCK_SIZE, BLOCKS, MAX_SEQS, MAX_TOKENS, CHUNKED, WATERMARK, EXTRA = (
    0, 1, 2, 3, 4, 5, 6,
)  # fmt: skip
NUM_RULES = 7

NOTHING = -1


@kernel
def _first_token(
    step: int, prefill: int, left: int, decoding: int, leaving: Ints, rules: Ints
) -> int:
    """Step of the first token of a prompt that starts in `step`, -1 if out of reach.

    `left` tokens are left in this step, and `decoding` requests make a token in the
    next one, less those that complete.
    """
    span = len(leaving)
    rest, at = prefill - left, step
    while rest > 0:
        decoding -= leaving[at % span]
        at += 1
        if at - step >= span:
            return NOTHING
        rest -= rules[MAX_TOKENS] - decoding
    return at


@kernel
def _blocks_in(step: int, first: int, slots: int, size: int) -> int:
    """Blocks of a request in a step, if it holds `slots` at its first token."""
    return (slots + max(step - first, 0) + size - 1) // size


@kernel
def _overflow(
    step: int, first: int, last: int, slots: int, used: Ints, rules: Ints, hint: int
) -> int:
    """Find a step up to `last` in which too few blocks are free; -1 if none."""
    size, blocks, span = rules[BLOCK_SIZE], rules[BLOCKS], len(used)
    soon = step <= hint <= last
    if soon and used[hint % span] + _blocks_in(hint, first, slots, size) > blocks:
        return hint
    for at in range(last, step - 1, -1):  # its KV only grows
        if used[at % span] + _blocks_in(at, first, slots, size) > blocks:
            return at
    return NOTHING


@kernel
def follow(
    order: Ints, prefill: Ints, decode: Ints, arrival_s: Floats, rules: Ints,
    times: Floats, window: int, allowance: float, places: float, span: int,
    stop_above: float, start: Ints, completion: Ints, completion_s: Floats,
) -> float:  # fmt: skip
    """Admit requests in an order; return total latency in seconds.

    Parameters
    ----------
    order : int64 array, shape (n,)
    prefill, decode, arrival_s : arrays, shape (n,)
    rules : int64 array
        See the constants above.
    times : float64 array, shape (forms, 4)
        Step times: constant, per prompt token, per decoded one, per token of KV.
    window : int
        Largest number of requests that do not fit and are passed over in a step.
    allowance : float
        Prompt tokens that each step adds to a budget of starts; a start spends its
        prompt, and none happens while the budget is overdrawn and any request runs.
    places : float
        Requests that may run while all others wait; times the root of the share of
        requests that wait later on, and at least one.
    span : int
        Largest number of steps of a request from its start to its last token.
    stop_above : float
        Total latency above which the result is not needed: infinity is returned.
    start, completion : int64 arrays, shape (n,)
        Steps, counted from 1; written.
    completion_s : float64 array, shape (n,)
        Written.
    """
    n = len(order)
    size, cap = rules[BLOCK_SIZE], rules[MAX_TOKENS]
    used, leaving = np.zeros(span, np.int64), np.zeros(span, np.int64)
    head, after = np.full(span, NOTHING), np.empty(n, np.int64)
    hint = np.full(n, NOTHING)
    next_of = np.empty(n + 1, np.int64)  # a list of those that wait, n at its head
    before = n
    for k in range(n):
        next_of[before] = order[k]
        before = order[k]
    next_of[before] = NOTHING
    waiting, running, decoding, held = n, 0, 0, 0
    part, computed = NOTHING, 0
    step, now, total, account = 0, 0.0, 0.0, 0.0
    still = 0.0  # arrivals of those that are not done
    for i in range(n):
        still += arrival_s[order[i]]
    while waiting > 0 or running > 0:
        step += 1
        slot = step % span
        left = cap - decoding
        decoded, prompt, first_tokens = decoding, 0, 0
        held += decoding
        account = min(account + allowance, allowance)
        limit = max(places * np.sqrt(max(waiting, 1) / n), 1.0)
        if part != NOTHING:
            rest = prefill[part] - computed
            new = min(rest, left)
            if rest > 1:
                prompt += new
            else:
                decoded += new
            computed += new
            held += new
            left -= new
            if new == rest:
                first_tokens += 1
                part = NOTHING
        missed, before = 0, n
        while (
            next_of[before] != NOTHING
            and part == NOTHING
            and left > 0
            and running < min(rules[MAX_SEQS], limit)
            and missed <= window
            and (account > 0 or running == 0)
        ):
            i = next_of[before]
            s = prefill[i]
            if arrival_s[i] > now:
                before = i
                continue
            slots = s + rules[EXTRA]
            mark = rules[WATERMARK] if running > 0 else 0
            fits = (rules[CHUNKED] or s <= left) and (
                _blocks_in(0, 0, slots, size) + mark <= rules[BLOCKS] - used[slot]
            )
            if fits:
                first = _first_token(
                    step, s, left, decoding + first_tokens, leaving, rules
                )
                last = first + decode[i] - 1
                fits = first != NOTHING and last - step < span
                if fits:
                    hint[i] = _overflow(step, first, last, slots, used, rules, hint[i])
                    fits = hint[i] == NOTHING
            if not fits:
                missed += 1
                before = i
                continue
            next_of[before] = next_of[i]
            waiting -= 1
            running += 1
            account -= s
            start[i], completion[i] = step, last
            for at in range(step, last + 1):
                used[at % span] += _blocks_in(at, first, slots, size)
            leaving[last % span] += 1
            after[i] = head[last % span]
            head[last % span] = i
            new = min(s, left)
            if s > 1:
                prompt += new
            else:
                decoded += new
            held += new
            left -= new
            if new < s:
                part, computed = i, new
            else:
                first_tokens += 1
        if running == 0:  # all that wait are to come
            step -= 1
            soonest = np.inf
            i = next_of[n]
            while i != NOTHING:
                soonest = min(soonest, arrival_s[i])
                i = next_of[i]
            if not soonest > now:
                return np.inf
            now = soonest
            continue
        took = 0.0
        for k in range(len(times)):
            took = max(
                took,
                times[k, 0]
                + times[k, 1] * prompt
                + times[k, 2] * decoded
                + times[k, 3] * held,
            )
        now += took
        decoding += first_tokens - leaving[slot]
        i = head[slot]
        while i != NOTHING:
            completion_s[i] = now
            total += now - arrival_s[i]
            still -= arrival_s[i]
            running -= 1
            held -= prefill[i] + decode[i] - 1
            i = after[i]
        head[slot], leaving[slot], used[slot] = NOTHING, 0, 0
        # All others are done later than now.
        if total + (waiting + running) * now - still > stop_above:
            return np.inf
    return total
