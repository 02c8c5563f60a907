"""The jitted loops of the beam search, together: kernels that call each other.

Requests are ranks here, sorted by the start that prices recommend. A partial schedule
is a decision time `clock`, what runs, and what waits:

- `end`, ascending, the completions of the `running` requests, and `used`, the KV held
  by all of them in those steps (with blocks, or a little more than that);
- `waiting`, the first few waiting ranks, ascending; all ranks from `next_rank` on wait
  behind them;
- `cost`, what the schedule has lost so far against the prices: see `sortedf.improve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FAR = 2**60
"""A step that no schedule reaches."""

FILL = (0.3, 3.0)
URGENCY = (0.25, 1.5)
EVENNESS = (0.3, 1.0)
PACE = (0.9, 3.0)
"""Ranges of an `Expansion`'s fields; urgency in answer lengths, pace in the fluid's."""

UNPACED = 4
"""One taste of so many has no pace."""

ANSWERS = 16
"""Waiting requests whose answers are taken for those of all."""

REACH = 15
"""Most places in a list that a move of the annealing goes."""

DELAYED, SWAPPED, RELOCATED, BLOCKS = 0.1, 0.4, 0.8, 0.95
"""Shares of the moves, added up: delays, swaps, single requests, blocks; the rest:
ruin and recreate.
"""

RUINED = 10
"""Most requests that are taken out and put back together."""

BLINK = 0.2
"""Probability with which a request is not looked at when a place is filled again."""

SEEN_BEHIND = 100
"""Requests behind a part of a list that are asked whether they are overdue."""

RANDOM_FACTOR, RANDOM_MODULUS = 48271, 2**31 - 1
"""Lehmer's generator: its products fit 64 bits with and without the JIT."""


PREFILL, DECODE, ARRIVAL, WEIGHT, DEADLINE, VOLUME, DUE = range(7)
"""Columns of `Guide.request`."""


class Guide(NamedTuple):
    """What the search knows of the requests, by rank, and of memory's prices.

    Attributes
    ----------
    request : int64 array, shape (n, 7)
        `s`, `o`, `a`, the weight of a step of latency, the last step to complete in,
        `v`, and the start that prices recommend.
    least : float64 array, shape (n,)
        What the request costs if it starts when it is due.
    price : float64 array, shape (T + 1, 2)
        The sums of `lambda_u` and of `u lambda_u` up to each step.
    late_cost : float
        Cost of each step after the last one to complete in.
    budget, block, max_seqs, max_tokens : int
        The engine's rules.
    by_end : bool
        Whether the last completion is what is minimised.

    Notes
    -----
    Few and plain arrays, because the loops below hand them on: a tuple of many arrays
    made them five times slower.
    """

    request: Ints
    least: Floats
    price: Floats
    late_cost: float
    budget: int
    block: int
    max_seqs: int
    max_tokens: int
    by_end: bool


class Expansion(NamedTuple):
    """How one expansion decides; drawn anew for each.

    It looks at `width` waiting requests; `fill` weighs memory that is used; `regret` is
    how soon what is overdue could start otherwise, in steps; `even` weighs even
    completions; no more volume is started than `pace` times what fits through memory in
    the meantime. Without pace, requests with equal answers that once started together
    complete together and start the next together, for good: memory is then half empty
    most of the time.
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
    """Room for one expansion: copies of a row, and what it starts."""

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
def request_cost(
    request: Ints, price: Floats, late_cost: float, i: int, t: int
) -> float:
    """Cost of starting `i` at `t`: weighted completion, lateness and priced KV."""
    last = len(price) - 1
    end = t + request[i, DECODE]
    low, high = min(t, last), min(end, last)
    cost: float = (
        request[i, WEIGHT] * end
        + (request[i, PREFILL] - t) * (price[high, 0] - price[low, 0])
        + price[high, 1]
        - price[low, 1]
    )
    if end > request[i, DEADLINE]:
        cost += late_cost * (end - request[i, DEADLINE])
    return cost


@kernel
def _copy(source: Ints, first: int, target: Ints, at: int, count: int) -> None:
    """Copy `count` entries from `first` on to where `at` says.

    A loop, since numba takes seconds to compile the assignment of a slice.
    """
    for m in range(count):
        target[at + m] = source[first + m]


@kernel
def find_due(guide: Guide, stride: int) -> None:
    """Fill in when requests are due: the cheapest start, by a scan and bisection.

    With `stride == 0` they are due on arrival.
    """
    request, price, late_cost = guide.request, guide.price, guide.late_cost
    for i in range(len(request)):
        first = best_start = request[i, ARRIVAL]
        best = request_cost(request, price, late_cost, i, first)
        for t in range(first + stride, len(price) if stride else 0, max(stride, 1)):
            cost = request_cost(request, price, late_cost, i, t)
            if cost < best:
                best, best_start = cost, t
        step = stride
        while step > 1:
            step = (step + 1) // 2
            for t in (best_start - step, best_start + step):
                if t >= first:
                    cost = request_cost(request, price, late_cost, i, t)
                    if cost < best:
                        best, best_start = cost, t
        request[i, DUE] = best_start
        guide.least[i] = best


@kernel
def _idle_cost(
    price: Floats, budget: int, low: int, high: int, count: int, used: int, end: int
) -> float:
    """Price of the KV that nobody holds in the steps `low + 1` to `high`.

    `count` requests hold `used` in step `end` and one token less each in each step
    before.
    """
    last = len(price) - 1
    a, b = min(low, last), min(high, last)
    prices, moments = price[b, 0] - price[a, 0], price[b, 1] - price[a, 1]
    return float((budget - used + count * end) * prices - count * moments)


@kernel
def _first_above(end: Ints, count: int, step: int) -> int:
    """Index of the first of the sorted `end[:count]` that is > step."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if end[middle] <= step:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _leave(end: Ints, used: Ints, count: int, clock: int) -> int:
    """Drop what has completed by `clock`; return the new count."""
    gone = _first_above(end, count, clock)
    if gone:
        for k in range(gone, count):
            end[k - gone] = end[k]
            used[k - gone] = used[k]
    return count - gone


@kernel
def _measure_room(budget: int, end: Ints, used: Ints, count: int, room: Ints) -> None:
    """Fill `room`: what starts at `t` fits until `end[k]` iff `s <= room[k] + t`.

    At `end[k]` it would hold `s + end[k] - t`. With blocks that is rounded up, but what
    is free is whole blocks, so the comparison is the same.
    """
    least = FAR
    for k in range(count):
        least = min(least, budget - used[k] - end[k])
        room[k] = least


@kernel
def _others_at(block: int, end: Ints, used: Ints, count: int, k: int, step: int) -> int:
    """KV held in `step` by those that complete later, `end[k:count]`.

    With blocks it is that much at most: each has grown by the whole blocks in between.
    """
    if k == count:
        return 0
    grown = (end[k] - step) // block * block
    return int(used[k] - (count - k) * grown)


@kernel
def _wait(
    request: Ints,
    budget: int,
    block: int,
    i: int,
    t: int,
    end: Ints,
    used: Ints,
    count: int,
    room: Ints,
) -> int:
    """Return how long `i` has to wait before it could fit, at least; 0 if it fits."""
    if request[i, ARRIVAL] > t:
        return int(request[i, ARRIVAL] - t)
    s, own_end = request[i, PREFILL], t + request[i, DECODE]
    if count and end[0] <= own_end and s > room[0] + t:
        return int(s - room[0] - t)
    k = _first_above(end, count, own_end)
    if k > 0 and s > room[k - 1] + t:
        return int(s - room[k - 1] - t)
    others = _others_at(block, end, used, count, k, own_end)
    if others - (-(s + request[i, DECODE]) // block * block) > budget:
        return FAR
    return 0


@kernel
def _insert(
    block: int, s: int, o: int, t: int, end: Ints, used: Ints, count: int
) -> None:
    """Start a request at `t` among the `count` running ones."""
    k = _first_above(end, count, t + o)
    others = _others_at(block, end, used, count, k, t + o)
    if k > 0 and end[k - 1] == t + o:
        others = used[k - 1]  # those that complete in the same step are still there
    for j in range(k):
        used[j] -= -(s + end[j] - t) // block * block
    for j in range(count, k, -1):
        end[j] = end[j - 1]
        used[j] = used[j - 1]
    end[k] = t + o
    used[k] = others - (-(s + o) // block * block)


@kernel
def _price_at(price: Floats, t: int) -> float:
    """Price of a token in the step after `t`."""
    last = len(price) - 1
    return float(price[min(t + 1, last), 0] - price[min(t, last), 0])


@kernel
def _fade(answers: Ints, ahead: int) -> float:
    """Return the weight of a gap between completions that is `ahead` steps away.

    What starts later may complete within it and close it, if its answer is shorter than
    that; and the farther it is, the more will have started.
    """
    longer = len(answers) - _first_above(answers, len(answers), ahead)
    far = ahead / answers[len(answers) // 2]
    return float(longer / len(answers) / (1 + far + far * far / 2))


@kernel
def _spread(price: Floats, t: int, end: Ints, count: int, answers: Ints) -> float:
    """Price of the KV that stays free because completions are not evenly spread.

    Until a completion, `count` requests grow by a token a step each, and that room has
    to be left free: a gap of `g` steps costs `count g^2 / 2` tokens times steps.
    """
    before, total = t, 0.0
    for k in range(count):
        gap = end[k] - before
        if gap:
            total += gap * gap * _fade(answers, end[k] - t)
        before = end[k]
    return total * count / 2 * _price_at(price, t)


@kernel
def _evenness(end: Ints, count: int, t: int, own_end: int, answers: Ints) -> float:
    """Return how much a completion at `own_end` evens out the others: see `_spread`."""
    k = _first_above(end, count, own_end)
    if k == count:
        return 0.0
    before = end[k - 1] if k > 0 else t
    gaps = (own_end - before) * (end[k] - own_end)
    return float(count * gaps * _fade(answers, own_end - t))


@kernel
def _next_random(state: int) -> int:
    return state * RANDOM_FACTOR % RANDOM_MODULUS


@kernel
def _between(low: float, high: float, state: int) -> float:
    """Return a number from `low` to `high`, the more likely the smaller.

    Here as everywhere only with arithmetic that gives the same on every machine.
    """
    share = state / RANDOM_MODULUS
    return low + (high - low) * share * share


@kernel
def _sample_answers(
    request: Ints, ids: Ints, first: int, count: int, answers: Ints
) -> float:
    """Fill `answers`, ascending, with some of `count` requests; return their mean."""
    total = 0
    for k in range(len(answers)):
        o = request[ids[first + k * count // len(answers)], DECODE]
        total += o
        j = k
        while j > 0 and answers[j - 1] > o:
            answers[j] = answers[j - 1]
            j -= 1
        answers[j] = o
    return total / len(answers)


@kernel
def _draw_expansion(seed: int, narrow: int, wide: int, answer: float) -> Expansion:
    """Draw a taste; `answer` is the length of answers that are due, in steps."""
    state = _next_random(_next_random(_next_random(seed)))
    width = int(_between(narrow, wide + 1, state))
    state = _next_random(state)
    fill = _between(FILL[0], FILL[1], state)
    state = _next_random(state)
    regret = 1 + int(_between(URGENCY[0], URGENCY[1], state) * answer)
    state = _next_random(state)
    even = _between(EVENNESS[0], EVENNESS[1], state)
    state = _next_random(state)
    pace = _between(PACE[0], PACE[1], _next_random(state))
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
    _copy(rows.end[row], 0, end, 0, count)
    _copy(rows.used[row], 0, used, 0, count)
    _copy(rows.waiting[row], 0, waiting, 0, num_waiting)
    answer = _sample_answers(request, waiting, 0, num_waiting, work.answers)
    expansion = _draw_expansion(seed, narrow, wide, answer)
    started = fresh = prompt_tokens = 0
    # In the beginning memory is empty, and there is nothing to keep pace with.
    quota = 1.0 if clock > 0 else np.inf
    while clock < until and num_waiting > 0:
        count = _leave(end, used, count, clock)
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
        if new:  # go on with those that move up from behind
            num_waiting, next_rank = _refill(
                len(request), waiting, num_waiting, next_rank
            )
            continue
        first_used, first_end = (used[0], end[0]) if count else (0, 0)
        cost += _idle_cost(
            price, guide.budget, clock, soon, count, first_used, first_end
        )
        quota += expansion.pace * guide.budget * (soon - clock)
        clock = soon
        fresh = prompt_tokens = 0
    if num_waiting == 0:
        clock, cost = _finish(price, guide.budget, clock, count, cost, end, used)
        return cost, clock, 0, 0, next_rank, cost, started
    value = cost + _overdue(guide, clock, waiting, num_waiting, next_rank)
    value += _spread(price, clock, end, count, work.answers)
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
    """Start what fits at `t`, by descending merit.

    `fresh` requests with `prompt_tokens` have been started at `t` before. Marks started
    requests in `work.waiting` by -1; returns the next decision time if nothing more is
    started now, how many were started, and the prompt tokens of all that start at `t`.
    `quota` is the volume that may be started; the last one may exceed it.
    """
    request, budget, block = guide.request, guide.budget, guide.block
    end, used, room, waiting = work.end, work.used, work.room, work.waiting
    fitting, merit = work.fitting, work.merit
    _measure_room(budget, end, used, count, room)
    soon = end[0] if count else FAR
    num_fitting = 0
    for c in range(min(num_waiting, expansion.width)):
        wait = _wait(request, budget, block, waiting[c], t, end, used, count, room)
        if wait:
            soon = min(soon, t + wait)
        else:
            fitting[num_fitting] = c
            num_fitting += 1
    if num_fitting:
        _rate(guide, expansion, t, end[0] if count else t + 1, num_fitting, work)
    even = expansion.even * _price_at(guide.price, t)
    new = 0
    while num_fitting and count < guide.max_seqs:
        if quota <= 0:
            soon = min(soon, t + 1 + int(-quota / (expansion.pace * budget)))
            break
        best, most = 0, -np.inf
        for f in range(num_fitting):
            own_end = t + request[waiting[fitting[f]], DECODE]
            gain = even * _evenness(end, count, t, own_end, work.answers) + merit[f]
            if gain > most:
                best, most = f, gain
        c = fitting[best]
        i = waiting[c]
        fitting[best] = -1
        tokens = prompt_tokens + request[i, PREFILL]
        if count - fresh - new + tokens <= guide.max_tokens:
            _insert(block, request[i, PREFILL], request[i, DECODE], t, end, used, count)
            count += 1
            work.rank[started + new] = i
            work.start[started + new] = t
            waiting[c] = -1
            new += 1
            prompt_tokens = tokens
            quota -= request[i, VOLUME]
            _measure_room(budget, end, used, count, room)
        elif fresh + new:
            soon = min(soon, t + 1)
        kept = 0
        for f in range(num_fitting):
            c = fitting[f]
            if c < 0:
                continue
            wait = _wait(request, budget, block, waiting[c], t, end, used, count, room)
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

    Starting earlier than prices recommend costs what it costs; starting what is overdue
    saves what it would cost later.
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
    """Price of what stays free after the last start; return the makespan and cost."""
    last = len(price) - 1
    for k in range(count):
        if end[k] > clock:
            cost += _idle_cost(price, budget, clock, end[k], count - k, used[k], end[k])
            clock = end[k]
    return clock, cost + _idle_cost(price, budget, clock, last, 0, 0, 0)


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

    As long as there is room in `new`, the results go there; what child `k` starts goes
    to `rank[first[k]:first[k + 1]]` and to `start` likewise. Returns how many went
    there. Without room it is only about the values.
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
        _copy(work.end, 0, new.end[k], 0, count)
        _copy(work.used, 0, new.used[k], 0, count)
        _copy(work.waiting, 0, new.waiting[k], 0, num_waiting)
        _copy(work.rank, 0, rank, first[k], started)
        _copy(work.start, 0, start, first[k], started)
        first[k + 1] = first[k] + started
        kept += 1
    return kept


class Line(NamedTuple):
    """A list placed request by request: row `k` is the state before position `k`.

    Attributes
    ----------
    clock, running : int64 arrays, shape (m + 1,)
        The last start, and how many run.
    fresh, prompt_tokens : int64 arrays, shape (m + 1,)
        How many of them started at `clock`, and their prompts' tokens.
    cost : float64 array, shape (m + 1,)
        Weighted completions and lateness of what has been placed.
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
    _copy(source.end[k], 0, target.end[m], 0, count)
    _copy(source.used[k], 0, target.used[m], 0, count)


@kernel
def place_next(guide: Guide, line: Line, k: int, i: int, delay: int, room: Ints) -> int:
    """Start `i` after row `k`, fill row `k + 1`, and return the start.

    It is the first step at or after the last start in which `i` fits; with a delay, the
    first one so many steps after that, or later. Nothing starts before what is ahead of
    it in the list, so nothing that starts later is there yet.
    """
    request, budget, block = guide.request, guide.budget, guide.block
    copy_row(line, k, line, k + 1)
    end, used, count = line.end[k + 1], line.used[k + 1], line.running[k]
    s, o = request[i, PREFILL], request[i, DECODE]
    t = max(line.clock[k], request[i, ARRIVAL])
    while True:
        count = _leave(end, used, count, t)
        now = t == line.clock[k]
        fresh = line.fresh[k] if now else 0
        prompt_tokens = s + (line.prompt_tokens[k] if now else 0)
        if count - fresh + prompt_tokens > guide.max_tokens:
            t = t + 1 if fresh else end[0]
            continue
        if count >= guide.max_seqs:
            t = end[0]
            continue
        _measure_room(budget, end, used, count, room)
        wait = _wait(request, budget, block, i, t, end, used, count, room)
        if wait:
            # Usage rises until the next completion: `i` may have to end after it.
            if wait == FAR:
                wait = end[_first_above(end, count, t + o)] + 1 - o - t
            t = min(t + wait, end[0])
        elif delay:
            t, delay = t + delay, 0
        else:
            break
    _insert(block, s, o, t, end, used, count)
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

    Delays that are -1 become those that lead to the given starts.
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


@kernel
def _held_after(price: Floats, t: int, end: Ints, used: Ints, count: int) -> float:
    """Price of the KV that what runs will hold after `t`."""
    last = len(price) - 1
    before, total = t, 0.0
    for k in range(count):
        if end[k] > before:
            low, high = min(before, last), min(end[k], last)
            running = count - k
            total += (used[k] - running * end[k]) * (price[high, 0] - price[low, 0])
            total += running * (price[high, 1] - price[low, 1])
            before = end[k]
    return total


@kernel
def _value_of(
    guide: Guide, line: Line, m: int, order: Ints, behind: int, answers: Ints
) -> float:
    """Rate what a list has cost up to row `m`, and what it leaves for those behind.

    That is the value of a partial schedule in the beam search, less what is the same
    for all that have started the same requests. `order[behind:]` are those behind; if
    there are none it is the cost alone.
    """
    price, t = guide.price, line.clock[m]
    end, used, count = line.end[m], line.used[m], line.running[m]
    if behind == len(order):
        return float(line.cost[m] + (end[count - 1] if guide.by_end else 0))
    value = line.cost[m] + guide.budget * price[min(t, len(price) - 1), 0]
    value += _held_after(price, t, end, used, count)
    value += _spread(price, t, end, count, answers)
    for k in range(behind, min(len(order), behind + SEEN_BEHIND)):
        i = order[k]
        if guide.request[i, DUE] < t:
            cost = request_cost(guide.request, price, guide.late_cost, i, t)
            value += cost - guide.least[i]
    return float(value)


@kernel
def _move(order: Ints, first: int, low: int, high: int, size: int) -> None:
    """Move the `size` entries at `low` behind those up to `high`, or the other way.

    `order[first + low:first + high]` is rotated by `size` to the left, or by `-size` to
    the right.
    """
    part = order[first + low : first + high].copy()
    for k in range(len(part)):
        order[first + low + k] = part[(k + size) % len(part)]


@kernel
def _recreate(
    guide: Guide,
    order: Ints,
    delay: Ints,
    first: int,
    low: int,
    high: int,
    trial: Line,
    room: Ints,
    state: int,
) -> int:
    """Take requests out of a list and put them back, whoever can start soonest first.

    Those are `order[first + low:first + high]` (modified in place). Of those that can
    start equally soon it is the one that the search prefers; now and then one is not
    looked at. Row `low` of `trial` is the state before. Returns the random state.
    """
    for k in range(low, high):
        best = k
        soonest = FAR
        for c in range(k, high):
            state = _next_random(state)
            if state < BLINK * RANDOM_MODULUS:
                continue
            i = order[first + c]
            t = place_next(guide, trial, k, i, delay[i], room)
            if t < soonest or (t == soonest and i < order[first + best]):
                soonest, best = t, c
        i = order[first + best]
        for c in range(best, k, -1):
            order[first + c] = order[first + c - 1]
        order[first + k] = i
        place_next(guide, trial, k, i, delay[i], room)
    return state


@kernel
def anneal_window(
    guide: Guide,
    order: Ints,
    delay: Ints,
    first: int,
    line: Line,
    trial: Line,
    moves: int,
    hot: float,
    cold: float,
    longest_delay: int,
    seed: int,
    least: float,
    best_order: Ints,
    best_delay: Ints,
) -> float:
    """Anneal a part of a list, `order[first:first + m]`; row 0 of `line` is before it.

    A move relocates a request or a few in a row, swaps two, takes some out and puts
    them back, or changes how long one is delayed; the list is then placed again from
    the first change on. Whatever is below `least` is kept in `best_order` and
    `best_delay`, of shape (m,). `order` and `delay` end with the last list. Returns the
    least value.
    """
    m = len(best_order)
    room = np.empty(line.end.shape[1], dtype=np.int64)
    answers = np.empty(ANSWERS, dtype=np.int64)  # for `_spread`
    _sample_answers(guide.request, order, first, m, answers)
    for k in range(m):
        i = order[first + k]
        place_next(guide, line, k, i, delay[i], room)
    value = _value_of(guide, line, m, order, first + m, answers)
    old = order[first : first + m].copy()
    state = seed
    for move in range(-1, moves):
        low = m
        changed, was = -1, 0
        if move >= 0:
            state = _next_random(state)
            kind = state / RANDOM_MODULUS
            state = _next_random(state)
            p = state % m
            state = _next_random(state)
            q = min(max(p + state % (2 * REACH + 1) - REACH, 0), m - 1)
            state = _next_random(state)
            if kind < DELAYED:
                changed = order[first + p]
                was, low = delay[changed], p
                share = state / RANDOM_MODULUS
                delay[changed] = 0 if was else 1 + int(longest_delay * share**3)
            elif p != q:
                low, high = min(p, q), max(p, q) + 1
                if kind < SWAPPED:
                    i, j = order[first + p], order[first + q]
                    order[first + p], order[first + q] = j, i
                elif kind < BLOCKS:
                    size = 1 if kind < RELOCATED else 2 + state % 3
                    _move(order, first, low, high, size if p < q else -size)
                else:
                    high = min(low + 3 + state % (RUINED - 2), m)
                    copy_row(line, low, trial, low)
                    state = _recreate(
                        guide, order, delay, first, low, high, trial, room, state
                    )
            if low == m:
                continue
            state = _next_random(state)
            heat = hot * (cold / hot) ** (move / moves)
            limit = value - heat * np.log(state / RANDOM_MODULUS)
            copy_row(line, low, trial, low)
            for k in range(low, m):
                i = order[first + k]
                place_next(guide, trial, k, i, delay[i], room)
                if trial.cost[k + 1] > limit:
                    break
            new = np.inf
            if trial.cost[k + 1] <= limit:
                new = _value_of(guide, trial, m, order, first + m, answers)
            if new > limit:
                _copy(old, low, order, first + low, m - low)
                if changed >= 0:
                    delay[changed] = was
                continue
            value = new
            _copy(order, first + low, old, low, m - low)
            for k in range(low + 1, m + 1):
                copy_row(trial, k, line, k)
        if value < least:
            least = value
            _copy(old, 0, best_order, 0, m)
            for k in range(m):
                best_delay[k] = delay[old[k]]
    return least
