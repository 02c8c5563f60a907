"""Minimising a smooth function over x >= 0: projected L-BFGS.

Written out because the climb calls it with ten thousand variables and a function that
costs milliseconds: scipy's L-BFGS-B spent longer than that on its own bookkeeping, and
many times longer where its threads met a busy machine. Everything here is a few dozen
passes over vectors.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Function = Callable[[Floats], tuple[float, Floats]]
    Pairs = deque[tuple[Floats, Floats, float]]

MEMORY = 12
"""Pairs of steps and changes of the slope that are kept."""

ARMIJO = 1e-4
"""Share of the promised decrease that a step must bring."""

HALVINGS = 12
"""Most times that a step is shortened."""


def minimise(
    function: Function,
    x: Floats,
    *,
    iterations: int,
    tolerance: float = 1e-9,
    stop: Callable[[], bool] = lambda: False,
) -> Floats:
    """Minimise over `x >= 0`, from a feasible start.

    Parameters
    ----------
    function : callable
        Gives value and gradient, shape (n,).
    x : float64 array, shape (n,)
        Start, not changed.
    iterations : int
        Most steps.
    tolerance : float
        Ends when a step lowers the value by less than this, relatively.
    stop : callable
        Asked before each step, and before a step is shortened.

    Returns
    -------
    float64 array, shape (n,)
        The best point found.

    Notes
    -----
    Variables at 0 whose slope would push them below are held there; the others move
    along the quasi-Newton direction, projected, with backtracking.
    """
    value, slope = function(x)
    pairs: Pairs = deque(maxlen=MEMORY)
    for _ in range(iterations):
        if stop():
            break
        free = (x > 0) | (slope < 0)
        direction = _direction(np.where(free, slope, 0), free, pairs)
        moved = _line_search(function, x, value, slope, direction, stop)
        if moved is None and pairs and not stop():
            pairs.clear()  # try again along the plain slope
            direction = _direction(np.where(free, slope, 0), free, pairs)
            moved = _line_search(function, x, value, slope, direction, stop)
        if moved is None:
            break
        new_x, new_value, new_slope = moved
        step, change = new_x - x, new_slope - slope
        curvature = _dot(step, change)
        if curvature > 1e-12 * _dot(change, change):
            pairs.append((step, change, curvature))
        gained = value - new_value
        x, value, slope = new_x, new_value, new_slope
        if gained <= tolerance * max(abs(value), 1e-12):
            break
    return x


def _direction(slope: Floats, free: NDArray[np.bool_], pairs: Pairs) -> Floats:
    """Two-loop recursion on the free variables; the steepest one without pairs."""
    if not pairs:
        longest = float(np.max(np.abs(slope), initial=0))
        return -slope / (longest or 1.0) * 0.05
    work = slope.copy()
    factors = []
    for step, change, curvature in reversed(pairs):
        factor = _dot(step, work) / curvature
        work -= factor * change
        factors.append(factor)
    step, change, curvature = pairs[-1]
    work *= curvature / _dot(change, change)
    for (step, change, curvature), factor in zip(pairs, reversed(factors), strict=True):
        work += (factor - _dot(change, work) / curvature) * step
    direction = np.where(free, -work, 0)
    return direction if _dot(direction, slope) < 0 else -slope


def _line_search(
    function: Function,
    x: Floats,
    value: float,
    slope: Floats,
    direction: Floats,
    stop: Callable[[], bool],
) -> tuple[Floats, float, Floats] | None:
    """Shorten the projected step until it lowers the value enough; None if never."""
    length = 1.0
    for _ in range(HALVINGS):
        new_x = np.maximum(x + length * direction, 0)
        promised = _dot(slope, new_x - x)
        if promised >= 0:
            return None
        new_value, new_slope = function(new_x)
        if new_value <= value + ARMIJO * promised:
            return new_x, new_value, new_slope
        if stop():
            return None
        # The least point of the parabola through both values, within reason.
        bend = new_value - value - promised
        length *= float(np.clip(-promised / (2 * bend), 0.1, 0.5))
    return None


def _dot(a: Floats, b: Floats) -> float:
    """Inner product without threads, which cost more than they save here."""
    return float(np.einsum("i,i->", a, b))
