"""Moves of the annealing, and the value of the resulting lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.improve.guide_kernels import DUE, FAR, request_cost
from sortedf.improve.list_kernels import copy_row, place_next
from sortedf.improve.price_kernels import (
    ANSWERS,
    held_after,
    sample_answers,
    spread_cost,
)
from sortedf.improve.random_kernels import RANDOM_MODULUS, next_random
from sortedf.improve.running_kernels import copy_entries
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.improve.guide_kernels import Guide
    from sortedf.improve.list_kernels import Line

    Ints = NDArray[np.int64]

REACH = 15
"""Largest distance of a move, in positions of the list."""

DELAYED, SWAPPED, RELOCATED, BLOCKS = 0.1, 0.4, 0.8, 0.95
"""Shares of the moves, added up: delays, swaps, single requests, blocks; the rest:
ruin and recreate.
"""

RUINED = 10
"""Largest number of requests removed and inserted again together."""

BLINK = 0.2
"""Probability that a request is skipped when a position is filled again."""

SEEN_BEHIND = 100
"""Requests behind a part of a list that are checked for being overdue."""


@kernel
def _value_of(
    guide: Guide, line: Line, m: int, order: Ints, behind: int, answers: Ints
) -> float:
    """Return the cost of a list up to row `m` plus an estimate for the rest.

    That is the value of a partial schedule in the beam search, less terms equal for all
    that have started the same requests. `order[behind:]` is the rest; if it is empty
    the value is the cost alone.
    """
    price, t = guide.price, line.clock[m]
    end, used, count = line.end[m], line.used[m], line.running[m]
    if behind == len(order):
        return float(line.cost[m] + (end[count - 1] if guide.by_end else 0))
    value = line.cost[m] + guide.budget * price[min(t, len(price) - 1), 0]
    value += held_after(price, t, end, used, count)
    value += spread_cost(price, t, end, count, answers)
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
    """Remove requests from a list and insert them again by their earliest starts.

    The requests are `order[first + low:first + high]` (modified in place). Ties go to
    the lower rank; each request may be skipped at random. Row `low` of `trial` is the
    state before. Returns the random state.
    """
    for k in range(low, high):
        best = k
        soonest = FAR
        for c in range(k, high):
            state = next_random(state)
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

    A move relocates a request or a few in a row, swaps two, removes some and inserts
    them again, or changes the delay of one; the list is then placed again from the
    first change on. Lists with a value below `least` are kept in `best_order` and
    `best_delay`, of shape (m,). `order` and `delay` end with the last list. Returns the
    least value.
    """
    m = len(best_order)
    room = np.empty(line.end.shape[1], dtype=np.int64)
    answers = np.empty(ANSWERS, dtype=np.int64)  # for `spread_cost`
    sample_answers(guide.request, order, first, m, answers)
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
            state = next_random(state)
            kind = state / RANDOM_MODULUS
            state = next_random(state)
            p = state % m
            state = next_random(state)
            q = min(max(p + state % (2 * REACH + 1) - REACH, 0), m - 1)
            state = next_random(state)
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
            state = next_random(state)
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
                copy_entries(old, low, order, first + low, m - low)
                if changed >= 0:
                    delay[changed] = was
                continue
            value = new
            copy_entries(order, first + low, old, low, m - low)
            for k in range(low + 1, m + 1):
                copy_row(trial, k, line, k)
        if value < least:
            least = value
            copy_entries(old, 0, best_order, 0, m)
            for k in range(m):
                best_delay[k] = delay[old[k]]
    return least
