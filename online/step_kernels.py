"""One step of the engine as a loop over arrays, by vLLM's rules.

The constants for the rows of the tables are defined here, since a kernel and the
constants that it reads must be in the same file.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sortedf.jit import kernel

Ints: TypeAlias = NDArray[np.int64]

# Rows of the request table.
PREFILL, DECODE, PREDICTED, COMPUTED, OUTPUT_TOKENS, BLOCKS = 0, 1, 2, 3, 4, 5
PREEMPTIONS, RECOMPUTED, LAST_TOKEN, CACHED, NUM_FIELDS = 6, 7, 8, 9, 10

# Entries of the array of rules.
BLOCK_SIZE, MAX_SEQS, MAX_TOKENS_STEP, CHUNKED, RESERVE, WATERMARK, EXTRA, RESTART = (
    0, 1, 2, 3, 4, 5, 6, 7,
)  # fmt: skip
THRESHOLD, NUM_RULES = 8, 9

# Entries of the array of results.
RUNNING, FREE, STARTED, FINISHED, PREEMPTED, RESUMED = 0, 1, 2, 3, 4, 5
PREFILL_TOKENS, NUM_DECODING, KV_TOKENS, FREE_AT_PEAK, SCHEDULED = 6, 7, 8, 9, 10
NEW_OUTPUT, CACHED_TOKENS, NUM_RESULTS = 11, 12, 13

# Rows of a pool's blocks. The queue of free blocks is a ring through block 0, which is
# not a real block: the first free block comes after it, the last one before it.
BEFORE, AFTER, USERS, KEY, SAME = 0, 1, 2, 3, 4


class BlockPool(NamedTuple):
    """KV blocks with prefix caching; all arrays are empty without it.

    Attributes
    ----------
    blocks : int64 array, shape (5, blocks + 1)
        By block: its neighbours in the queue of free blocks, the number of running
        requests that hold it, the key of its content (-1 if it cannot be found), and
        the next younger block with the same key, 0 if there is none.
    cells : int64 array, shape (2, k)
        By block that a request may fill: the key of its content when it is full, and
        the block that the request holds for it.
    offset : int64 array, shape (n + 1,)
        Begin of each request's cells.
    first : int64 array, by key
        The oldest block with this key, 0 if there is none.
    """

    blocks: Ints
    cells: Ints
    offset: Ints
    first: Ints


def make_pool(num_blocks: int, offset: Ints, keys: Ints) -> BlockPool:
    """Return a pool of free blocks, in order of their numbers."""
    blocks = np.zeros((5, num_blocks + 1), dtype=np.int64)
    blocks[BEFORE] = np.roll(np.arange(num_blocks + 1), 1)
    blocks[AFTER] = np.roll(np.arange(num_blocks + 1), -1)
    blocks[KEY] = -1
    cells = np.stack([keys, np.zeros_like(keys)])
    first = np.zeros(int(keys.max(initial=-1)) + 1, dtype=np.int64)
    return BlockPool(blocks, cells, offset, first)


def no_pool() -> BlockPool:
    """Return an empty pool, for engines without prefix caching."""
    empty = np.zeros(0, dtype=np.int64)
    return BlockPool(empty.reshape(5, 0), empty.reshape(2, 0), empty, empty)


@kernel
def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)


@kernel
def _at_most(tokens: int, threshold: int) -> int:
    """Tokens of one request in a step: at most the threshold, if there is one.

    0 means none, and the caller sets it to 0 in steps with a single request.
    """
    return min(tokens, threshold) if threshold > 0 else tokens


@kernel
def _unlink(blocks: Ints, b: int) -> None:
    """Take a block out of the queue of free ones."""
    before, after = blocks[BEFORE, b], blocks[AFTER, b]
    blocks[AFTER, before], blocks[BEFORE, after] = after, before


@kernel
def _link(blocks: Ints, before: int, b: int) -> None:
    """Put a block into the queue behind another one."""
    after = blocks[AFTER, before]
    blocks[AFTER, before], blocks[BEFORE, after] = b, b
    blocks[BEFORE, b], blocks[AFTER, b] = before, after


@kernel
def _forget(pool: BlockPool, b: int) -> None:
    """Remove a block's content from the cache."""
    blocks, first = pool.blocks, pool.first
    key = blocks[KEY, b]
    if key < 0:
        return
    if first[key] == b:
        first[key] = blocks[SAME, b]
    else:
        other = first[key]
        while blocks[SAME, other] != b:
            other = blocks[SAME, other]
        blocks[SAME, other] = blocks[SAME, b]
    blocks[KEY, b] = -1


@kernel
def _keep(pool: BlockPool, i: int, begin: int, end: int) -> None:
    """Enter a request's newly full blocks into the cache."""
    blocks, first = pool.blocks, pool.first
    for j in range(pool.offset[i] + begin, pool.offset[i] + end):
        key, b = pool.cells[0, j], pool.cells[1, j]
        blocks[KEY, b], blocks[SAME, b] = key, 0
        if first[key] == 0:
            first[key] = b
            continue
        other = first[key]  # the oldest copy is found
        while blocks[SAME, other] != 0:
            other = blocks[SAME, other]
        blocks[SAME, other] = b


@kernel
def num_cached(pool: BlockPool, i: int, most: int) -> int:
    """Count a request's first blocks, up to `most`, that are in the cache."""
    begin = pool.offset[i]
    for j in range(most):
        if pool.first[pool.cells[0, begin + j]] == 0:
            return j
    return most


@kernel
def _num_free_among(pool: BlockPool, i: int, found: int) -> int:
    """Count those of a request's cached blocks that no running request holds."""
    begin, free = pool.offset[i], 0
    for j in range(found):
        free += pool.blocks[USERS, pool.first[pool.cells[0, begin + j]]] == 0
    return free


@kernel
def _take_found(pool: BlockPool, i: int, found: int) -> None:
    """Let a request hold its first `found` blocks, which are in the cache."""
    blocks, begin = pool.blocks, pool.offset[i]
    for j in range(begin, begin + found):
        b = pool.first[pool.cells[0, j]]
        if blocks[USERS, b] == 0:
            _unlink(blocks, b)
        blocks[USERS, b] += 1
        pool.cells[1, j] = b


@kernel
def _take_new(pool: BlockPool, i: int, held: int, more: int) -> None:
    """Allocate blocks from the front of the queue; their cached content is lost."""
    begin = pool.offset[i] + held
    for j in range(begin, begin + more):
        b = pool.blocks[AFTER, 0]
        _unlink(pool.blocks, b)
        _forget(pool, b)
        pool.blocks[USERS, b] = 1
        pool.cells[1, j] = b


@kernel
def _give_back(pool: BlockPool, i: int, held: int) -> int:
    """Release a request's blocks; return the number of blocks that become free.

    Cached blocks are appended to the queue, the last of a prompt first; the others go
    to its front.
    """
    blocks, begin, freed = pool.blocks, pool.offset[i], 0
    for j in range(begin, begin + held):
        b = pool.cells[1, j]
        blocks[USERS, b] -= 1
        if blocks[USERS, b] == 0:
            freed += 1
            if blocks[KEY, b] < 0:
                _link(blocks, 0, b)
    for j in range(begin + held - 1, begin - 1, -1):
        b = pool.cells[1, j]
        if blocks[USERS, b] == 0 and blocks[KEY, b] >= 0:
            _link(blocks, blocks[BEFORE, 0], b)
    return freed


@kernel
def release(table: Ints, i: int, restart: int, pool: BlockPool) -> int:
    """Free the KV of a running request; return the number of freed blocks.

    All its computed tokens must be computed again, and with `restart` its output tokens
    are lost as well.
    """
    freed = table[BLOCKS, i]
    if len(pool.first) > 0:
        freed = _give_back(pool, i, freed)
    table[BLOCKS, i] = 0
    table[RECOMPUTED, i] += table[COMPUTED, i]
    table[COMPUTED, i] = 0
    table[PREEMPTIONS, i] += 1
    if restart:
        table[OUTPUT_TOKENS, i] = 0
    return int(freed)


@kernel
def _schedule_running(
    table: Ints, running: Ints, rules: Ints, pool: BlockPool,
    scheduled: Ints, preempted: Ints, out: Ints,
) -> int:  # fmt: skip
    """Allocate tokens and blocks to the running requests, in order.

    When too few blocks are free, the last running request is preempted, until there are
    enough or the request itself is preempted. Returns the step's remaining tokens.
    """
    budget = rules[MAX_TOKENS_STEP]
    k = 0
    while k < out[RUNNING] and budget > 0:
        i = running[k]
        left = table[PREFILL, i] + table[OUTPUT_TOKENS, i] - table[COMPUTED, i]
        new = min(_at_most(left, rules[THRESHOLD]), budget)
        slots = table[COMPUTED, i] + new + rules[EXTRA]
        need = _blocks(slots, rules[BLOCK_SIZE]) - table[BLOCKS, i]
        while need > out[FREE]:
            out[RUNNING] -= 1
            victim = running[out[RUNNING]]
            out[FREE] += release(table, victim, rules[RESTART], pool)
            preempted[out[PREEMPTED]] = victim
            out[PREEMPTED] += 1
            if victim == i:
                break
        if out[RUNNING] == k:  # the request itself was preempted
            break
        if len(pool.first) > 0:
            done = table[COMPUTED, i]
            _take_new(pool, i, table[BLOCKS, i], need)
            _keep(pool, i, done // rules[BLOCK_SIZE], (done + new) // rules[BLOCK_SIZE])
        out[FREE] -= need
        table[BLOCKS, i] += need
        scheduled[k] = new
        budget -= new
        k += 1
    out[SCHEDULED] = k
    return int(budget)


@kernel
def _admit(
    table: Ints, running: Ints, offered: Ints, rules: Ints, pool: BlockPool,
    scheduled: Ints, budget: int, out: Ints,
) -> None:  # fmt: skip
    """Start offered requests in order, up to the first that does not fit.

    Blocks found in the cache are not computed; those of them that were free are taken
    from the free blocks.
    """
    size = rules[BLOCK_SIZE]
    for i in offered:
        if budget <= 0 or out[RUNNING] >= rules[MAX_SEQS]:
            break
        tokens = table[PREFILL, i] + table[OUTPUT_TOKENS, i]
        found = shared = 0
        if len(pool.first) > 0:
            found = num_cached(pool, i, (tokens - 1) // size)
            shared = found - _num_free_among(pool, i, found)
        done = found * size
        new = _at_most(tokens - done, rules[THRESHOLD])
        if new > budget and not rules[CHUNKED]:
            break
        new = min(new, budget)
        mark = rules[WATERMARK] if out[RUNNING] > 0 else 0
        holds = _blocks(done + new + rules[EXTRA], size)
        if rules[RESERVE] and _blocks(tokens, size) - shared + mark > out[FREE]:
            break
        if holds - shared + mark > out[FREE]:
            break
        if len(pool.first) > 0:
            _take_found(pool, i, found)
            _take_new(pool, i, found, holds - found)
            _keep(pool, i, found, (done + new) // size)
            table[COMPUTED, i] = done
            table[CACHED, i] += done
            out[CACHED_TOKENS] += done
        out[FREE] -= holds - shared
        table[BLOCKS, i] = holds
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
        out[PREFILL_TOKENS if left > 1 else NUM_DECODING] += tokens[k]
        table[COMPUTED, i] += tokens[k]
        if tokens[k] == left:
            table[OUTPUT_TOKENS, i] += 1
            out[NEW_OUTPUT] += 1
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
def _let_finish(
    table: Ints, running: Ints, pool: BlockPool, finished: Ints, out: Ints
) -> None:
    """Remove completed requests from `running`, and free their blocks."""
    stay = 0
    for k in range(out[RUNNING]):
        i = running[k]
        out[KV_TOKENS] += table[COMPUTED, i]
        if table[OUTPUT_TOKENS, i] == table[DECODE, i]:
            finished[out[FINISHED]] = i
            out[FINISHED] += 1
            freed = table[BLOCKS, i]
            if len(pool.first) > 0:
                freed = _give_back(pool, i, freed)
            out[FREE] += freed
            table[BLOCKS, i] = 0
        else:
            running[stay] = i
            stay += 1
    out[RUNNING] = stay


@kernel
def step_once(
    table: Ints, running: Ints, offered: Ints, rules: Ints, pool: BlockPool, step: int,
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
    budget = _schedule_running(table, running, rules, pool, scheduled, preempted, out)
    if out[PREEMPTED] == 0:
        _admit(table, running, offered, rules, pool, scheduled, budget, out)
    out[FREE_AT_PEAK] = out[FREE]
    advance(
        table, running, scheduled, out[SCHEDULED], step, resumed, resumed_after, out
    )
    _let_finish(table, running, pool, finished, out)
