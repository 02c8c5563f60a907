"""Annealing of a list: what the beam search leaves to be gained where requests are few.

A schedule is a list with delays: each request starts in the first step, not before the
one ahead of it, in which it fits, or some steps later. Every schedule is such a list.
Delays are needed, because waiting can pay: a request that starts later holds less.

A window moves along the list. What is in it is annealed, its first third is settled,
and the window moves on. Its value is that of a partial schedule in the beam search; in
the last window it is the objective itself, so with few requests all is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.improve.beam import most_running
from sortedf.improve.kernels import (
    DECODE,
    RANDOM_MODULUS,
    Guide,
    Line,
    anneal_window,
    copy_row,
    list_starts,
    place_next,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WINDOW = 60
"""Requests that are annealed together."""

SETTLED = 20
"""How many of them are settled before the window moves on."""

HOT, COLD = (0.3, 1.5), 0.005
"""First temperatures, drawn from this range, and the last: in mean answers, or in what
a step costs by which all that is behind is late, if that is more.
"""

LOOK_AHEAD = 50
"""Steps over which the price of a step is averaged."""

CHUNK = 2000
"""Moves after which it is looked whether time is over."""


def anneal(
    guide: Guide, start: Ints, moves: int, seed: int, over: Callable[[], bool]
) -> Ints:
    """Anneal a schedule once, window by window.

    Parameters
    ----------
    guide : Guide
    start : int64 array, shape (n,)
        Start steps by rank.
    moves : int
        In all windows together.
    seed : int
    over : callable
        Asked now and then whether to stop; what is not settled then keeps its order.

    Returns
    -------
    int64 array, shape (n,)
        Start steps by rank of another schedule, better or not.
    """
    n = len(start)
    order = np.argsort(start, kind="stable")
    delay = np.full(n, -1, dtype=np.int64)
    size = min(WINDOW, n)
    line, trial = (_line(size, most_running(guide)) for _ in range(2))
    list_starts(guide, start, order, delay, line)
    rng = np.random.default_rng(seed)
    hot = HOT[0] * (HOT[1] / HOT[0]) ** rng.random()
    moves //= max(1, -(-(n - WINDOW) // SETTLED) + 1)
    _clear(line)
    first = 0
    while not over():
        size = min(WINDOW, n - first)
        _anneal_part(guide, order, delay, first, line, trial, moves, hot, rng, over)
        if first + size == n:
            break
        room = np.empty(line.end.shape[1], dtype=np.int64)
        for k in range(SETTLED):
            i = order[first + k]
            place_next(guide, line, k, i, delay[i], room)
        copy_row(line, SETTLED, line, 0)
        first += SETTLED
    return list_starts(guide, start, order, delay, line)


def _anneal_part(
    guide: Guide,
    order: Ints,
    delay: Ints,
    first: int,
    line: Line,
    trial: Line,
    moves: int,
    hot: float,
    rng: np.random.Generator,
    over: Callable[[], bool],
) -> None:
    """Anneal one window, and leave the best that was seen."""
    size = min(WINDOW, len(order) - first)
    best_order = order[first : first + size].copy()
    best_delay = delay[best_order]
    longest = int(guide.request[best_order, DECODE].mean())
    unit = max(float(longest), _cost_of_a_step(guide, int(line.clock[0])))
    chunks = max(1, round(moves / CHUNK))
    heat = unit * hot * (COLD / hot) ** (np.arange(chunks + 1) / chunks)
    least = np.inf
    for chunk in range(chunks):
        least = anneal_window(
            guide, order, delay, first, line, trial, moves // chunks, heat[chunk],
            heat[chunk + 1], longest, int(rng.integers(1, RANDOM_MODULUS)), least,
            best_order, best_delay,
        )  # fmt: skip
        if over():
            break
    order[first : first + size] = best_order
    delay[best_order] = best_delay


def _cost_of_a_step(guide: Guide, t: int) -> float:
    """Estimate the cost if all that has not started by `t` starts a step later."""
    low, high = np.minimum([t, t + LOOK_AHEAD], len(guide.price) - 1)
    summed = guide.price[high, 0] - guide.price[low, 0]
    return guide.budget * float(summed) / LOOK_AHEAD


def _line(size: int, running: int) -> Line:
    def ints(*shape: int) -> Ints:
        return np.empty(shape, dtype=np.int64)

    return Line(
        clock=ints(size + 1),
        running=ints(size + 1),
        fresh=ints(size + 1),
        prompt_tokens=ints(size + 1),
        cost=np.empty(size + 1),
        end=ints(size + 1, running),
        used=ints(size + 1, running),
    )


def _clear(line: Line) -> None:
    """Make row 0 the beginning: nothing runs."""
    for column in (line.clock, line.running, line.fresh, line.prompt_tokens):
        column[0] = 0
    line.cost[0] = 0.0
