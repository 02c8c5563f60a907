"""Annealing of a list, an improvement on the beam search for few requests.

A schedule is represented by a list with delays: each request starts in the first step,
not before its predecessor's start, in which it fits, or some steps later. Every
schedule has such a list. Delays are needed because starting later can free memory for
others.

A window moves along the list: its requests are annealed, the first third of them is
fixed, and the window moves on. The value of a window is that of a partial schedule in
the beam search; in the last window it is the objective itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.improve.annealing_kernels import anneal_window
from sortedf.improve.beam import most_running
from sortedf.improve.guide_kernels import DECODE, Guide
from sortedf.improve.list_kernels import Line, copy_row, list_starts, place_next
from sortedf.improve.random_kernels import RANDOM_MODULUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WINDOW = 60
"""Requests in a window."""

SETTLED = 20
"""Requests fixed before the window moves on."""

HOT, COLD = (0.3, 1.5), 0.005
"""First temperature, drawn from this range, and last one, in units of the mean answer
length or, if larger, of the cost of delaying all later requests by a step.
"""

LOOK_AHEAD = 50
"""Steps over which prices are averaged for the cost of a delay."""

CHUNK = 2000
"""Moves between two checks of the time limit."""


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
        Moves of all windows together.
    seed : int
    over : callable
        Called from time to time; if true, the rest of the list keeps its order.

    Returns
    -------
    int64 array, shape (n,)
        Start steps by rank of the resulting schedule, which may be worse.
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
    """Anneal one window; `order` and `delay` get the best state found."""
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
    """Estimate the cost of delaying all requests not started by `t` by one step."""
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
    """Reset row 0 to the empty schedule at step 0."""
    for column in (line.clock, line.running, line.fresh, line.prompt_tokens):
        column[0] = 0
    line.cost[0] = 0.0
