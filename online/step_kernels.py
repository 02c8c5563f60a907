"""One step of the engine as a loop over arrays, by vLLM's rules.

The constants for the rows of the tables are defined here, since a kernel and the
constants that it reads must be in the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

# Rows of the request table.
PREFILL, DECODE, PREDICTED, COMPUTED, OUTPUT_TOKENS, BLOCKS = 0, 1, 2, 3, 4, 5
PREEMPTIONS, RECOMPUTED, LAST_TOKEN, NUM_FIELDS = 6, 7, 8, 9

# Entries of the array of rules.
BLOCK_SIZE, MAX_SEQS, MAX_TOKENS_STEP, CHUNKED, RESERVE, WATERMARK, EXTRA, RESTART = (
    0, 1, 2, 3, 4, 5, 6, 7,
)  # fmt: skip
NUM_RULES = 8

# Entries of the array of results.
RUNNING, FREE, STARTED, FINISHED, PREEMPTED, RESUMED = 0, 1, 2, 3, 4, 5
PREFILL_TOKENS, DECODE_TOKENS, KV_TOKENS, FREE_AT_PEAK, SCHEDULED = 6, 7, 8, 9, 10
MADE_TOKENS, NUM_RESULTS = 11, 12


@kernel
def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)


@kernel
def release(table: Ints, i: int, restart: int) -> int:
    """Free the KV of a running request; return the number of freed blocks.

    All its computed tokens must be computed again, and with `restart` its output tokens
    are lost as well.
    """
    freed = table[BLOCKS, i]
    table[BLOCKS, i] = 0
    table[RECOMPUTED, i] += table[COMPUTED, i]
    table[COMPUTED, i] = 0
    table[PREEMPTIONS, i] += 1
    if restart:
        table[OUTPUT_TOKENS, i] = 0
    return int(freed)


@kernel
def _schedule_running(
    table: Ints, running: Ints, rules: Ints, scheduled: Ints, preempted: Ints, out: Ints
) -> int:
    """Allocate tokens and blocks to the running requests, in order.

    When too few blocks are free, the last running request is preempted, until there are
    enough or the request itself is preempted. Returns the step's remaining tokens.
    """
    budget = rules[MAX_TOKENS_STEP]
    k = 0
    while k < out[RUNNING] and budget > 0:
        i = running[k]
        new = min(
            table[PREFILL, i] + table[OUTPUT_TOKENS, i] - table[COMPUTED, i], budget
        )
        slots = table[COMPUTED, i] + new + rules[EXTRA]
        need = _blocks(slots, rules[BLOCK_SIZE]) - table[BLOCKS, i]
        while need > out[FREE]:
            out[RUNNING] -= 1
            victim = running[out[RUNNING]]
            out[FREE] += release(table, victim, rules[RESTART])
            preempted[out[PREEMPTED]] = victim
            out[PREEMPTED] += 1
            if victim == i:
                break
        if out[RUNNING] == k:  # the request itself was preempted
            break
        out[FREE] -= need
        table[BLOCKS, i] += need
        scheduled[k] = new
        budget -= new
        k += 1
    out[SCHEDULED] = k
    return int(budget)


@kernel
def _admit(
    table: Ints, running: Ints, offered: Ints, rules: Ints,
    scheduled: Ints, budget: int, out: Ints,
) -> None:  # fmt: skip
    """Start offered requests in order, up to the first that does not fit."""
    size = rules[BLOCK_SIZE]
    for i in offered:
        if budget <= 0 or out[RUNNING] >= rules[MAX_SEQS]:
            break
        tokens = table[PREFILL, i] + table[OUTPUT_TOKENS, i]
        if tokens > budget and not rules[CHUNKED]:
            break
        new = min(tokens, budget)
        mark = rules[WATERMARK] if out[RUNNING] > 0 else 0
        need = _blocks(new + rules[EXTRA], size)
        if rules[RESERVE] and _blocks(tokens, size) + mark > out[FREE]:
            break
        if need + mark > out[FREE]:
            break
        out[FREE] -= need
        table[BLOCKS, i] = need
        running[out[RUNNING]] = i
        scheduled[out[RUNNING]] = new
        out[RUNNING] += 1
        out[STARTED] += 1
        out[SCHEDULED] += 1
        budget -= new


@kernel
def advance(
    table: Ints, served: Ints, tokens: Ints, count: int, step: int,
    resumed: Ints, resumed_after: Ints, out: Ints,
) -> None:  # fmt: skip
    """Process the tokens of the first `count` served requests; count in `out`."""
    for k in range(count):
        i = served[k]
        left = table[PREFILL, i] + table[OUTPUT_TOKENS, i] - table[COMPUTED, i]
        out[PREFILL_TOKENS if left > 1 else DECODE_TOKENS] += tokens[k]
        table[COMPUTED, i] += tokens[k]
        if tokens[k] == left:
            table[OUTPUT_TOKENS, i] += 1
            out[MADE_TOKENS] += 1
            if table[LAST_TOKEN, i] != step - 1:
                resumed[out[RESUMED]] = i
                resumed_after[out[RESUMED]] = table[LAST_TOKEN, i]
                out[RESUMED] += 1
            table[LAST_TOKEN, i] = step


@kernel
def catch_up(
    table: Ints, served: Ints, count: int, steps: int, last: int,
    gone: Ints, num_gone: int,
) -> int:  # fmt: skip
    """Add one token per step over `steps` steps to the first `count` served requests.

    Then the first `num_gone` ids of `gone` are removed if they are among the served.
    Returns the number of remaining ones.
    """
    if steps > 0:
        for k in range(count):
            i = served[k]
            table[COMPUTED, i] += steps
            table[OUTPUT_TOKENS, i] += steps
            table[LAST_TOKEN, i] = last
    if num_gone == 0:
        return count
    stay = 0
    for k in range(count):
        i = served[k]
        here = True
        for m in range(num_gone):
            if gone[m] == i:
                here = False
        if here:
            served[stay] = i
            stay += 1
    return stay


@kernel
def _let_finish(table: Ints, running: Ints, finished: Ints, out: Ints) -> None:
    """Remove completed requests from `running`, and free their blocks."""
    stay = 0
    for k in range(out[RUNNING]):
        i = running[k]
        out[KV_TOKENS] += table[COMPUTED, i]
        if table[OUTPUT_TOKENS, i] == table[DECODE, i]:
            finished[out[FINISHED]] = i
            out[FINISHED] += 1
            out[FREE] += table[BLOCKS, i]
            table[BLOCKS, i] = 0
        else:
            running[stay] = i
            stay += 1
    out[RUNNING] = stay


@kernel
def step_once(
    table: Ints, running: Ints, offered: Ints, rules: Ints, step: int,
    scheduled: Ints, finished: Ints, preempted: Ints,
    resumed: Ints, resumed_after: Ints, out: Ints,
) -> None:  # fmt: skip
    """Run one step; everything but `offered` and `rules` is modified in place.

    On entry `out` holds the numbers of running requests and free blocks, on return all
    counts. `resumed` lists the requests whose token of this step does not follow one of
    the previous step, `resumed_after` the step of their last token, -1 if this is the
    first.
    """
    running_now, free_now = out[RUNNING], out[FREE]
    out[:] = 0
    out[RUNNING], out[FREE] = running_now, free_now
    budget = _schedule_running(table, running, rules, scheduled, preempted, out)
    if out[PREEMPTED] == 0:
        _admit(table, running, offered, rules, scheduled, budget, out)
    out[FREE_AT_PEAK] = out[FREE]
    advance(
        table, running, scheduled, out[SCHEDULED], step, resumed, resumed_after, out
    )
    _let_finish(table, running, finished, out)
