"""Minimisation of a smooth function over x >= 0: projected L-BFGS.

The ascent calls it with ten thousand variables and a function that takes milliseconds:
scipy's L-BFGS-B takes longer than that for its own bookkeeping, and many times longer
when its threads compete for a busy machine. An iteration here is a few dozen passes
over vectors.
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
"""Stored pairs of a step and the change of the gradient."""

ARMIJO = 1e-4
"""Share of the predicted decrease that a step must achieve."""

HALVINGS = 12
"""Reductions of a step, at most."""


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
        Returns value and gradient, shape (n,).
    x : float64 array, shape (n,)
        Initial point, not modified.
    iterations : int
        Steps, at most.
    tolerance : float
        Relative decrease of the value below which it ends.
    stop : callable
        Called before each step, and before a step is shortened; ends if true.

    Returns
    -------
    float64 array, shape (n,)
        The best point found.

    Notes
    -----
    Variables at 0 with a positive gradient stay fixed; the others move along the
    projected quasi-Newton direction, with backtracking.
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
            pairs.clear()  # try again along the gradient
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
    """Two-loop recursion on the free variables; steepest descent without pairs."""
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
    """Shorten the projected step until it satisfies `ARMIJO`; None if it never does."""
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
        # Minimum of the parabola through both values, clipped.
        bend = new_value - value - promised
        length *= float(np.clip(-promised / (2 * bend), 0.1, 0.5))
    return None


def _dot(a: Floats, b: Floats) -> float:
    """Inner product without threads, which are slower for these sizes."""
    return float(np.einsum("i,i->", a, b))
