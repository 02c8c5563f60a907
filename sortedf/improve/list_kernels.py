"""Placement of a list of requests, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sortedf.improve.guide_kernels import (
    ARRIVAL,
    DEADLINE,
    DECODE,
    FAR,
    PREFILL,
    WEIGHT,
)
from sortedf.improve.running_kernels import (
    copy_entries,
    drop_completed,
    first_above,
    insert_running,
    measure_room,
    wait_of,
)
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.improve.guide_kernels import Guide

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class Line(NamedTuple):
    """A list placed request by request: row `k` is the state before position `k`.

    Attributes
    ----------
    clock, running : int64 arrays, shape (m + 1,)
        The last start, and the number of running requests.
    fresh, prompt_tokens : int64 arrays, shape (m + 1,)
        Number of those that started at `clock`, and their prompts' tokens.
    cost : float64 array, shape (m + 1,)
        Weighted completions and lateness of the requests placed.
    end, used : int64 arrays, shape (m + 1, running)
        As in a partial schedule of the beam search.
    """

    clock: Ints
    running: Ints
    fresh: Ints
    prompt_tokens: Ints
    cost: Floats
    end: Ints
    used: Ints


@kernel
def copy_row(source: Line, k: int, target: Line, m: int) -> None:
    """Make row `m` of one list the same as row `k` of another one."""
    count = source.running[k]
    target.clock[m] = source.clock[k]
    target.running[m] = count
    target.fresh[m] = source.fresh[k]
    target.prompt_tokens[m] = source.prompt_tokens[k]
    target.cost[m] = source.cost[k]
    copy_entries(source.end[k], 0, target.end[m], 0, count)
    copy_entries(source.used[k], 0, target.used[m], 0, count)


@kernel
def place_next(guide: Guide, line: Line, k: int, i: int, delay: int, room: Ints) -> int:
    """Start `i` after row `k`, fill row `k + 1`, and return the start.

    It is the first step at or after the last start in which `i` fits; with a delay, the
    first one at least so many steps later. Requests start in list order, so none that
    starts later has been placed.
    """
    request, budget, block = guide.request, guide.budget, guide.block
    copy_row(line, k, line, k + 1)
    end, used, count = line.end[k + 1], line.used[k + 1], line.running[k]
    s, o = request[i, PREFILL], request[i, DECODE]
    t = max(line.clock[k], request[i, ARRIVAL])
    while True:
        count = drop_completed(end, used, count, t)
        now = t == line.clock[k]
        fresh = line.fresh[k] if now else 0
        prompt_tokens = s + (line.prompt_tokens[k] if now else 0)
        if count - fresh + prompt_tokens > guide.max_tokens:
            t = t + 1 if fresh else end[0]
            continue
        if count >= guide.max_seqs:
            t = end[0]
            continue
        measure_room(budget, end, used, count, room)
        wait = wait_of(request, budget, block, i, t, end, used, count, room)
        if wait:
            # Usage rises until the next completion: `i` may have to end after it.
            if wait == FAR:
                wait = end[first_above(end, count, t + o)] + 1 - o - t
            t = min(t + wait, end[0])
        elif delay:
            t, delay = t + delay, 0
        else:
            break
    insert_running(block, s, o, t, end, used, count)
    line.clock[k + 1] = t
    line.running[k + 1] = count + 1
    line.fresh[k + 1] = fresh + 1
    line.prompt_tokens[k + 1] = prompt_tokens
    cost = float(request[i, WEIGHT] * (t + o))
    cost += guide.late_cost * max(t + o - request[i, DEADLINE], 0)
    line.cost[k + 1] = line.cost[k] + cost
    return int(t)


@kernel
def list_starts(
    guide: Guide, start: Ints, order: Ints, delay: Ints, line: Line
) -> Ints:
    """Place a whole list in the first two rows of `line`; return the starts.

    Delays of -1 are replaced by those that give the given starts.
    """
    room = np.empty(line.end.shape[1], dtype=np.int64)
    found = np.empty(len(order), dtype=np.int64)
    line.clock[0] = line.running[0] = line.fresh[0] = line.prompt_tokens[0] = 0
    line.cost[0] = 0.0
    for k in range(len(order)):
        i = order[k]
        if delay[i] < 0:
            soonest = place_next(guide, line, 0, i, 0, room)
            delay[i] = max(start[i] - soonest, 0)
        found[i] = place_next(guide, line, 0, i, delay[i], room)
        copy_row(line, 1, line, 0)
    return found
