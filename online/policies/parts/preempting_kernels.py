"""Choice of starts and evictions by score, as one loop over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

# Entries of the array of rules, and rows of the request table; see
# `online.step_kernels`.
BLOCK_SIZE, MAX_SEQS, MAX_TOKENS_STEP, CHUNKED, WATERMARK, EXTRA = 0, 1, 2, 3, 5, 6
PREFILL, COMPUTED, OUTPUT_TOKENS = 0, 3, 4


@kernel
def _goes_before(
    i: int, j: int, running: Ints, guarded: Bools, score: Floats, arrival_s: Floats
) -> bool:
    """Whether the i-th running request precedes the j-th: by (guarded, score, age)."""
    if guarded[i] != guarded[j]:
        return bool(guarded[i])
    if score[i] != score[j]:
        return bool(score[i] < score[j])
    a, b = running[i], running[j]
    if arrival_s[a] != arrival_s[b]:
        return bool(arrival_s[a] < arrival_s[b])
    return bool(a < b)


@kernel
def _sort(
    running: Ints, guarded: Bools, score: Floats, arrival_s: Floats, places: Ints
) -> None:
    """Fill `places` with the positions in `running`, in the order of `_goes_before`.

    Insertion sort, since the last decision left them nearly in this order.
    """
    for m in range(len(running)):
        k = m
        while k > 0 and _goes_before(
            m, places[k - 1], running, guarded, score, arrival_s
        ):
            places[k] = places[k - 1]
            k -= 1
        places[k] = m


@kernel
def _blocks_after(ints: Ints, i: int, size: int, extra: int) -> int:
    """Blocks that a request holds when all its tokens so far are processed."""
    tokens: int = ints[PREFILL, i] + ints[OUTPUT_TOKENS, i]
    return -(-(tokens + extra) // size)


@kernel
def _growth(ints: Ints, i: int, size: int, extra: int) -> int:
    """Blocks of `_blocks_after` that a request does not hold yet."""
    computed = ints[COMPUTED, i]
    held = -(-(computed + extra) // size) if computed > 0 else 0
    return _blocks_after(ints, i, size, extra) - held


@kernel
def _fits(blocks: int, free: int, count: int, per_running: float, rules: Ints) -> bool:
    """Whether one more that needs `blocks` fits beside `count` others."""
    if count == 0:
        return blocks <= free
    later = int(per_running * (count + 1))
    return bool(count < rules[MAX_SEQS] and blocks + rules[WATERMARK] + later <= free)


@kernel
def _hold(node: int, parent: Ints, held: Ints) -> None:
    """Have one more request hold a node of the forest, and all above it."""
    while node >= 0:
        held[node] += 1
        node = parent[node]


@kernel
def _let_go(node: int, parent: Ints, depth: Ints, held: Ints) -> int:
    """Have one request hold them no more; return the blocks that others still hold."""
    shared = 0
    while node >= 0:
        held[node] -= 1
        if held[node] > 0:
            shared = max(shared, depth[node])
        node = parent[node]
    return shared


@kernel
def _there(node: int, most: int, parent: Ints, depth: Ints, held: Ints) -> int:
    """Blocks that others hold of the `most` first of a request."""
    while node >= 0 and held[node] == 0:
        node = parent[node]
    return min(depth[node], most) if node >= 0 else 0


@kernel
def choose(
    ints: Ints, arrival_s: Floats, running: Ints, guarded: Bools, score: Floats,
    candidates: Ints, candidate_score: Floats, num_candidates: int,
    leaf: Ints, parent: Ints, depth: Ints, held: Ints, found: Ints,
    free_blocks: int, hysteresis: float, per_running: float, rules: Ints,
    ids: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Choose the requests to start and to evict.

    Blocks are counted as if whole prompts were processed in the next step, even if they
    take several, so that no request starts in blocks that a prompt in progress needs.

    Parameters
    ----------
    ints, arrival_s
        The request table.
    running, guarded, score
        Running requests, whether each is protected from eviction, and its score.
    candidates, candidate_score
        The first `num_candidates` waiting requests by score.
    leaf, parent, depth, held : int64 arrays
        The forest of prefixes, empty if no prefix is shared.
    found : int64 array
        Tokens of each candidate that are in the cache now.
    free_blocks : int
    hysteresis : float
        Difference by which a candidate's score must be below that of an evicted one.
    per_running : float
        Blocks to keep free for the growth of each running request.
    rules : int64 array
        See `online.rules.rules_array`.
    ids : int64 array
        Filled with the running requests in new order, evicted ones last.

    Returns
    -------
    started, stay : int
        Number of candidates that start, and of `ids` that keep running.
    """
    size, extra = rules[BLOCK_SIZE], rules[EXTRA]
    count = stay = len(running)
    places = ids  # the buffer is reused; positions are replaced by ids at the end
    _sort(running, guarded, score, arrival_s, places)
    num_guarded = 0
    free, tokens = free_blocks, rules[MAX_TOKENS_STEP]
    for m in range(count):
        i = running[m]
        num_guarded += guarded[m]
        free -= _growth(ints, i, size, extra)
        tokens -= ints[PREFILL, i] + ints[OUTPUT_TOKENS, i] - ints[COMPUTED, i]
    started = 0
    held = held.copy()
    for c in range(num_candidates):
        i = candidates[c]
        node = leaf[i] if i < len(leaf) else -1
        most = (ints[PREFILL, i] + ints[OUTPUT_TOKENS, i] - 1) // size
        there = _there(node, most, parent, depth, held)
        own = ints[PREFILL, i] + ints[OUTPUT_TOKENS, i] - max(found[c], there * size)
        # Evictions would not free tokens: a decoding request uses only one.
        if tokens < (1 if rules[CHUNKED] else own):
            break
        in_all = _blocks_after(ints, i, size, extra)
        blocks = in_all - there
        # Evict the worst until it fits; none if it never does.
        left, free_then, tokens_then, count_then = stay, free, tokens, count
        fits = True
        while not _fits(blocks, free_then, count_then, per_running, rules):
            left -= 1
            if left < num_guarded or not (
                score[places[left]] > candidate_score[c] + hysteresis
            ):
                fits = False
                break
            j = running[places[left]]
            theirs = leaf[j] if j < len(leaf) else -1
            free_then += _blocks_after(ints, j, size, extra)
            free_then -= _let_go(theirs, parent, depth, held)
            blocks = in_all - _there(node, most, parent, depth, held)
            tokens_then += ints[PREFILL, j] + ints[OUTPUT_TOKENS, j] - ints[COMPUTED, j]
            count_then -= 1
        if not fits:
            break
        _hold(node, parent, held)
        stay, free, tokens = left, free_then - blocks, tokens_then
        tokens -= min(own, tokens)
        count = count_then + 1
        started += 1
    for m in range(len(running)):
        ids[m] = running[places[m]]
    return started, stay
