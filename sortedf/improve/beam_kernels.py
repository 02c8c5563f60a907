"""Beam search: partial schedules and their extension.

Requests are ranks here, sorted by the start that prices recommend. A partial schedule
is a decision time `clock`, the running requests, and the waiting ones:

- `end`, ascending, the completions of the `running` requests, and `used`, the KV held
  by all of them in those steps (with blocks, or a little more than that);
- `waiting`, the first few waiting ranks, ascending; all ranks from `next_rank` on wait
  behind them;
- `cost`, the loss of the schedule so far against the prices: see `sortedf.improve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sortedf.improve.guide_kernels import (
    DECODE,
    DUE,
    FAR,
    PREFILL,
    VOLUME,
    request_cost,
)
from sortedf.improve.price_kernels import (
    evenness,
    idle_cost,
    price_at,
    sample_answers,
    spread_cost,
)
from sortedf.improve.random_kernels import next_random, skewed
from sortedf.improve.running_kernels import (
    copy_entries,
    drop_completed,
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

FILL = (0.3, 3.0)
URGENCY = (0.25, 1.5)
EVENNESS = (0.3, 1.0)
PACE = (0.9, 3.0)
"""Ranges of an `Expansion`'s fields; urgency in answer lengths, pace in the fluid's."""

UNPACED = 4
"""Every how many expansions one has no pace, on average."""


class Expansion(NamedTuple):
    """Parameters of one expansion, drawn at random.

    `width` waiting requests are considered; `fill` weighs used memory; `regret` is the
    number of steps until overdue requests could start otherwise; `even` weighs even
    completions; at most `pace` times the volume that memory can serve meanwhile is
    started. Without pace, requests with equal answers that once started together
    complete together and the next ones start together, and so on: memory is then half
    empty most of the time.
    """

    width: int
    fill: float
    regret: int
    even: float
    pace: float


class BeamRows(NamedTuple):
    """Partial schedules, one in each row; see the module for the fields."""

    clock: Ints
    running: Ints
    num_waiting: Ints
    next_rank: Ints
    cost: Floats
    end: Ints
    used: Ints
    waiting: Ints


class Scratch(NamedTuple):
    """Work space of one expansion: copies of a row, and the requests it starts."""

    end: Ints
    used: Ints
    waiting: Ints
    room: Ints
    answers: Ints
    fitting: Ints
    merit: Floats
    rank: Ints
    start: Ints


@kernel
def _draw_expansion(seed: int, narrow: int, wide: int, answer: float) -> Expansion:
    """Draw parameters; `answer` is the length of answers that are due, in steps."""
    state = next_random(next_random(next_random(seed)))
    width = int(skewed(narrow, wide + 1, state))
    state = next_random(state)
    fill = skewed(FILL[0], FILL[1], state)
    state = next_random(state)
    regret = 1 + int(skewed(URGENCY[0], URGENCY[1], state) * answer)
    state = next_random(state)
    even = skewed(EVENNESS[0], EVENNESS[1], state)
    state = next_random(state)
    pace = skewed(PACE[0], PACE[1], next_random(state))
    if state % UNPACED == 0:
        pace = np.inf
    return Expansion(width, fill, regret, even, pace)


@kernel
def _refill(n: int, waiting: Ints, num_waiting: int, next_rank: int) -> tuple[int, int]:
    """Close the gaps that started requests (-1) left, and fill up from behind."""
    kept = 0
    for c in range(num_waiting):
        if waiting[c] >= 0:
            waiting[kept] = waiting[c]
            kept += 1
    while kept < num_waiting and next_rank < n:
        waiting[kept] = next_rank
        kept += 1
        next_rank += 1
    return kept, next_rank


@kernel
def _expand(
    guide: Guide,
    rows: BeamRows,
    row: int,
    until: int,
    seed: int,
    narrow: int,
    wide: int,
    work: Scratch,
) -> tuple[float, int, int, int, int, float, int]:
    """Continue one partial schedule to its first decision time >= `until`.

    Works on copies in `work`; returns its value (lower is better), the fields of the
    new row, and how many requests were started (`work.rank`, `work.start`).

    At a decision time, the waiting requests that fit are started by descending merit,
    each as long as it still fits. The next decision time is the next completion, or
    the first step in which one of the waiting requests could fit.
    """
    request, price, late_cost = guide.request, guide.price, guide.late_cost
    end, used, waiting = work.end, work.used, work.waiting
    clock, count = rows.clock[row], rows.running[row]
    num_waiting, next_rank = rows.num_waiting[row], rows.next_rank[row]
    cost = rows.cost[row]
    copy_entries(rows.end[row], 0, end, 0, count)
    copy_entries(rows.used[row], 0, used, 0, count)
    copy_entries(rows.waiting[row], 0, waiting, 0, num_waiting)
    answer = sample_answers(request, waiting, 0, num_waiting, work.answers)
    expansion = _draw_expansion(seed, narrow, wide, answer)
    started = fresh = prompt_tokens = 0
    # At the beginning memory is empty, so the pace is not limited.
    quota = 1.0 if clock > 0 else np.inf
    while clock < until and num_waiting > 0:
        count = drop_completed(end, used, count, clock)
        soon, new, prompt_tokens = _decide(
            guide, expansion, clock, count, num_waiting, started, fresh, prompt_tokens,
            quota, work,
        )  # fmt: skip
        for k in range(started, started + new):
            i = work.rank[k]
            cost += request_cost(request, price, late_cost, i, clock) - guide.least[i]
            quota -= request[i, VOLUME]
        started += new
        count += new
        fresh += new
        if new:  # continue with the next waiting requests
            num_waiting, next_rank = _refill(
                len(request), waiting, num_waiting, next_rank
            )
            continue
        first_used, first_end = (used[0], end[0]) if count else (0, 0)
        cost += idle_cost(
            price, guide.budget, clock, soon, count, first_used, first_end
        )
        quota += expansion.pace * guide.budget * (soon - clock)
        clock = soon
        fresh = prompt_tokens = 0
    if num_waiting == 0:
        clock, cost = _finish(price, guide.budget, clock, count, cost, end, used)
        return cost, clock, 0, 0, next_rank, cost, started
    value = cost + _overdue(guide, clock, waiting, num_waiting, next_rank)
    value += spread_cost(price, clock, end, count, work.answers)
    return value, clock, count, num_waiting, next_rank, cost, started


@kernel
def _decide(
    guide: Guide,
    expansion: Expansion,
    t: int,
    count: int,
    num_waiting: int,
    started: int,
    fresh: int,
    prompt_tokens: int,
    quota: float,
    work: Scratch,
) -> tuple[int, int, int]:
    """Start requests that fit at `t`, by descending merit.

    `fresh` requests with `prompt_tokens` have been started at `t` before. Marks started
    requests in `work.waiting` by -1; returns the next decision time if nothing more is
    started now, how many were started, and the prompt tokens of all that start at `t`.
    `quota` is the volume that may be started; the last one may exceed it.
    """
    request, budget, block = guide.request, guide.budget, guide.block
    end, used, room, waiting = work.end, work.used, work.room, work.waiting
    fitting, merit = work.fitting, work.merit
    measure_room(budget, end, used, count, room)
    soon = end[0] if count else FAR
    num_fitting = 0
    for c in range(min(num_waiting, expansion.width)):
        wait = wait_of(request, budget, block, waiting[c], t, end, used, count, room)
        if wait:
            soon = min(soon, t + wait)
        else:
            fitting[num_fitting] = c
            num_fitting += 1
    if num_fitting:
        _rate(guide, expansion, t, end[0] if count else t + 1, num_fitting, work)
    even = expansion.even * price_at(guide.price, t)
    new = 0
    while num_fitting and count < guide.max_seqs:
        if quota <= 0:
            soon = min(soon, t + 1 + int(-quota / (expansion.pace * budget)))
            break
        best, most = 0, -np.inf
        for f in range(num_fitting):
            own_end = t + request[waiting[fitting[f]], DECODE]
            gain = even * evenness(end, count, t, own_end, work.answers) + merit[f]
            if gain > most:
                best, most = f, gain
        c = fitting[best]
        i = waiting[c]
        fitting[best] = -1
        tokens = prompt_tokens + request[i, PREFILL]
        if count - fresh - new + tokens <= guide.max_tokens:
            insert_running(
                block, request[i, PREFILL], request[i, DECODE], t, end, used, count
            )
            count += 1
            work.rank[started + new] = i
            work.start[started + new] = t
            waiting[c] = -1
            new += 1
            prompt_tokens = tokens
            quota -= request[i, VOLUME]
            measure_room(budget, end, used, count, room)
        elif fresh + new:
            soon = min(soon, t + 1)
        kept = 0
        for f in range(num_fitting):
            c = fitting[f]
            if c < 0:
                continue
            wait = wait_of(
                request, budget, block, waiting[c], t, end, used, count, room
            )
            if wait:
                soon = min(soon, t + wait)
            else:
                fitting[kept], merit[kept] = c, merit[f]
                kept += 1
        num_fitting = kept
    return soon, new, prompt_tokens


@kernel
def _rate(
    guide: Guide,
    expansion: Expansion,
    t: int,
    until: int,
    num_fitting: int,
    work: Scratch,
) -> None:
    """Fill `merit`: memory filled until the next completion, and time.

    Starting earlier than prices recommend counts with its cost; starting an overdue
    request saves its cost at a later start.
    """
    request, price, late_cost = guide.request, guide.price, guide.late_cost
    last = len(price) - 1
    fill = expansion.fill * (price[min(until, last), 0] - price[min(t, last), 0])
    for f in range(num_fitting):
        i = work.waiting[work.fitting[f]]
        now = request_cost(request, price, late_cost, i, t)
        if request[i, DUE] >= t:
            other = guide.least[i]
        else:
            other = request_cost(request, price, late_cost, i, t + expansion.regret)
        work.merit[f] = fill * request[i, PREFILL] + other - now


@kernel
def _finish(
    price: Floats,
    budget: int,
    clock: int,
    count: int,
    cost: float,
    end: Ints,
    used: Ints,
) -> tuple[int, float]:
    """Add the price of free KV after the last start; return the makespan and cost."""
    last = len(price) - 1
    for k in range(count):
        if end[k] > clock:
            cost += idle_cost(price, budget, clock, end[k], count - k, used[k], end[k])
            clock = end[k]
    return clock, cost + idle_cost(price, budget, clock, last, 0, 0, 0)


@kernel
def _overdue(
    guide: Guide, t: int, waiting: Ints, num_waiting: int, next_rank: int
) -> float:
    """Cost that has become certain: that of waiting requests that should have begun."""
    request, price, late_cost = guide.request, guide.price, guide.late_cost
    total = 0.0
    for c in range(num_waiting):
        i = waiting[c]
        if request[i, DUE] >= t:
            return total
        total += request_cost(request, price, late_cost, i, t) - guide.least[i]
    i = next_rank
    while i < len(request) and request[i, DUE] < t:
        total += request_cost(request, price, late_cost, i, t) - guide.least[i]
        i += 1
    return total


@kernel
def expand_rows(
    guide: Guide,
    rows: BeamRows,
    parent: Ints,
    seeds: Ints,
    until: int,
    narrow: int,
    wide: int,
    work: Scratch,
    value: Floats,
    new: BeamRows,
    rank: Ints,
    start: Ints,
    first: Ints,
) -> int:
    """Expand rows, once for each entry of `parent` and `seeds`, and fill `value`.

    Results are stored in `new` as long as it has rows; the requests that child `k`
    starts are stored in `rank[first[k]:first[k + 1]]`, and in `start` likewise. Returns
    the number stored. Without rows only the values are computed.
    """
    kept = first[0] = 0
    room = len(first) - 1
    for k in range(len(parent)):
        child, clock, count, num_waiting, next_rank, cost, started = _expand(
            guide, rows, parent[k], until, seeds[k], narrow, wide, work
        )
        value[k] = child
        if kept < k or k >= room or first[k] + started > len(rank):
            continue
        new.clock[k] = clock
        new.running[k] = count
        new.num_waiting[k] = num_waiting
        new.next_rank[k] = next_rank
        new.cost[k] = cost
        copy_entries(work.end, 0, new.end[k], 0, count)
        copy_entries(work.used, 0, new.used[k], 0, count)
        copy_entries(work.waiting, 0, new.waiting[k], 0, num_waiting)
        copy_entries(work.rank, 0, rank, first[k], started)
        copy_entries(work.start, 0, start, first[k], started)
        first[k + 1] = first[k] + started
        kept += 1
    return kept
