"""KV usage of a schedule over time, by one sweep over starts and completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


def kv_used_at(
    instance: Instance, start: NDArray[np.int64], step: NDArray[np.int64]
) -> NDArray[np.int64]:
    """KV held in each of the given steps, in tokens (whole blocks).

    Parameters
    ----------
    start : int64 array, shape (n,)
        Start steps `p`.
    step : int64 array, shape (k,)
        Steps, ascending.

    Returns
    -------
    int64 array, shape (k,)
        For each step `t` the sum of `s_i + t - p_i`, rounded up to blocks, over the
        requests with `p_i < t <= p_i + o_i`, the blocks of shared prefixes once.
    """
    used = np.zeros(len(step), dtype=np.int64)
    completion = start + instance.decode
    _sweep(
        instance.prefill - start,
        start,
        completion,
        np.argsort(start),
        np.argsort(completion),
        instance.engine.block_size,
        step,
        used,
    )
    if instance.prefixes is not None:
        used -= _counted_twice(instance, start, completion, step)
    return used


def _counted_twice(
    instance: Instance, start: Ints, completion: Ints, step: Ints
) -> Ints:
    """Tokens of shared prefixes in each step, beyond once for each node held."""
    shared = instance.prefixes
    assert shared is not None
    change = np.zeros(len(step) + 1, dtype=np.int64)
    for ids, tokens in zip(
        shared.members(), shared.blocks * instance.engine.block_size, strict=True
    ):
        begins, ends = start[ids], completion[ids]
        np.add.at(change, np.searchsorted(step, begins, "right"), tokens)
        np.add.at(change, np.searchsorted(step, ends, "right"), -tokens)
        for begin, end in _union(begins, ends):
            change[np.searchsorted(step, begin, "right")] -= tokens
            change[np.searchsorted(step, end, "right")] += tokens
    return np.cumsum(change)[:-1]


def _union(begins: Ints, ends: Ints) -> list[tuple[int, int]]:
    """Join intervals that overlap or touch."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


@kernel
def _sweep(
    offset: Ints,
    start: Ints,
    completion: Ints,
    by_start: Ints,
    by_completion: Ints,
    block: int,
    step: Ints,
    used: Ints,
) -> None:
    """Fill `used` (modified in place).

    A running request holds `offset + t` tokens in step `t`, so the sum over running
    requests needs their count and the sum of their offsets; what rounding up adds
    depends only on `(offset + t) mod block`, so it needs a count per residue.
    """
    n = len(start)
    residues = np.zeros(block, dtype=np.int64)
    running = 0
    total = 0
    next_start = 0
    next_end = 0
    for k in range(len(step)):
        t = step[k]
        while next_start < n and start[by_start[next_start]] < t:
            i = by_start[next_start]
            running += 1
            total += offset[i]
            residues[offset[i] % block] += 1
            next_start += 1
        while next_end < n and completion[by_completion[next_end]] < t:
            i = by_completion[next_end]
            running -= 1
            total -= offset[i]
            residues[offset[i] % block] -= 1
            next_end += 1
        used[k] = total + running * t
        if block > 1:
            for r in range(block):
                used[k] += residues[r] * (-(r + t) % block)
