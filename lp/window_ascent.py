"""Ascent to better prices when the starts of each request are limited to a window.

The function is that of `lp.smoothing`, a soft minimum over the starts of each window,
and the method that of `sortedf.quasi_newton`: projected L-BFGS. Here it is one compiled
kernel, because a search over windows makes a short ascent in each of thousands of nodes
with a thousand prices: a node takes less than a millisecond.

One thing is different. In a node that contains no schedule the function is unbounded.
So a step whose slope at its end is still steep is tripled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lp.windows import Windows
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CUT = 18.0
"""Brackets this many temperatures above the least have weight 0 in soft minima."""

MEMORY = 8
"""Stored pairs of a step and the change of the gradient."""

ARMIJO = 1e-4
"""Share of the predicted increase that a step must achieve."""

SHORTER = 12
"""Reductions of a step, at most."""

LONGER = 6
"""Triplings of a step, at most."""

STEEP = 0.5
"""A step is tripled while the slope at its end is at least this share of its first."""

FIRST = 0.05
"""Largest first change of a price, in units of the largest price."""

TOLERANCE = 1e-7
"""Relative increase of the value by a step below which the ascent ends."""


class WindowProblem(NamedTuple):
    """Requests with windows, the budget and the temperature, for the kernels."""

    prefill: Ints
    decode: Ints
    first: Ints
    last: Ints
    budget: float
    temperature: float


class Spread(NamedTuple):
    """Mean and variance of the random starts of each request, shape (n,)."""

    mean: Floats
    variance: Floats


def climb_windows(
    instance: Instance,
    windows: Windows,
    price: Floats,
    *,
    temperature: float,
    iterations: int,
    enough: float,
) -> tuple[Floats, Spread]:
    """Return better prices for these windows, and the spread of starts at them.

    Parameters
    ----------
    price : float64 array, shape (T,)
        Initial prices, not modified.
    enough : float
        Stop when the smoothed dual function reaches this; it is the sum of soft minima
        minus `M` times the sum of prices, without subtracting the arrivals.
    """
    better = price.astype(np.float64)
    mean, variance = np.empty((2, instance.num_requests))
    problem = WindowProblem(
        instance.prefill,
        instance.decode,
        windows.first,
        windows.last,
        float(instance.usable_kv),
        temperature,
    )
    _climb(problem, better, iterations, enough, mean, variance)
    return better, Spread(mean, variance)


@kernel
def soft_minima(
    problem: WindowProblem, price: Floats, held: Floats, mean: Floats, variance: Floats
) -> float:
    """Sum of soft minima of `t + o + price` over the windows; see `lp.smoothing`.

    Fills `held`, the expected tokens held in each step, and mean and variance of the
    random starts (all modified in place).
    """
    prefill, decode, first, last, _, temperature = problem
    steps = len(price)
    sums = np.zeros(steps + 1)
    moments = np.zeros(steps + 1)
    for t in range(1, steps + 1):
        sums[t] = sums[t - 1] + price[t - 1]
        moments[t] = moments[t - 1] + price[t - 1] * t
    count = np.zeros(steps + 2)
    offset = np.zeros(steps + 2)
    bracket = np.empty(steps + 1)
    total = 0.0
    for i in range(len(prefill)):
        s = prefill[i]
        o = decode[i]
        low = min(first[i], steps)
        high = min(last[i], steps)
        least = np.inf
        for t in range(low, high + 1):
            if t + o > least + CUT * temperature:
                high = t - 1
                break
            e = min(t + o, steps)
            value = (s - t) * (sums[e] - sums[t]) + moments[e] - moments[t]
            bracket[t] = t + o + value
            least = min(least, bracket[t])
        weight = 0.0
        first_moment = 0.0
        second_moment = 0.0
        for t in range(low, high + 1):
            excess = (bracket[t] - least) / temperature
            bracket[t] = np.exp(-excess) if excess < CUT else 0.0
            weight += bracket[t]
            first_moment += bracket[t] * t
            second_moment += bracket[t] * t * t
        total += least - temperature * np.log(weight)
        mean[i] = first_moment / weight
        variance[i] = second_moment / weight - mean[i] * mean[i]
        for t in range(low, high + 1):
            if bracket[t] > 0.0:
                w = bracket[t] / weight
                e = min(t + o, steps) + 1
                count[t + 1] += w
                count[e] -= w
                offset[t + 1] += w * (s - t)
                offset[e] -= w * (s - t)
    running = 0.0
    base = 0.0
    for t in range(1, steps + 1):
        running += count[t]
        base += offset[t]
        held[t - 1] = running * t + base
    return total


# Loops instead of array expressions below: those take many times as long to compile,
# which would delay each user's first search.


@kernel
def _value(
    problem: WindowProblem, price: Floats, slope: Floats, mean: Floats, variance: Floats
) -> float:
    """Smoothed dual function; fills `slope` with its gradient (modified in place)."""
    value = soft_minima(problem, price, slope, mean, variance)
    budget = problem.budget
    for t in range(len(price)):
        slope[t] -= budget
        value -= budget * price[t]
    return value


@kernel
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for t in range(len(a)):
        total += a[t] * b[t]
    return total


@kernel
def _add(a: Floats, factor: float, b: Floats) -> None:
    """Add `factor b` to `a` (modified in place)."""
    for t in range(len(a)):
        a[t] += factor * b[t]


@kernel
def _move(price: Floats, length: float, direction: Floats, moved: Floats) -> None:
    """Fill `moved` (modified in place) with the projected step."""
    for t in range(len(price)):
        moved[t] = max(price[t] + length * direction[t], 0.0)


@kernel
def _climb(
    problem: WindowProblem,
    price: Floats,
    iterations: int,
    enough: float,
    mean: Floats,
    variance: Floats,
) -> float:
    """Improve `price`; fill `mean` and `variance` (all modified in place)."""
    size = len(price)
    steps = np.zeros((MEMORY, size))
    changes = np.zeros((MEMORY, size))
    curvature = np.zeros(MEMORY)
    known = 0
    slope = np.empty(size)
    direction = np.empty(size)
    new_price = np.empty(size)
    new_slope = np.empty(size)
    value = _value(problem, price, slope, mean, variance)
    for _ in range(iterations):
        if value >= enough:
            break
        _point(price, slope, steps, changes, curvature, known, direction)
        new_value = _line_search(
            problem, price, value, slope, direction, enough,
            new_price, new_slope, mean, variance,
        )  # fmt: skip
        if new_value <= value:
            if known == 0:
                break
            known = 0  # try again along the gradient
            continue
        k = known % MEMORY
        for t in range(size):
            steps[k, t] = new_price[t] - price[t]
            changes[k, t] = slope[t] - new_slope[t]
            price[t] = new_price[t]
            slope[t] = new_slope[t]
        curvature[k] = _dot(steps[k], changes[k])
        if curvature[k] > 1e-12 * _dot(changes[k], changes[k]):
            known += 1
        gained = new_value - value
        value = new_value
        if gained <= TOLERANCE * abs(value):
            break
    return _value(problem, price, slope, mean, variance)


@kernel
def _point(
    price: Floats,
    slope: Floats,
    steps: Floats,
    changes: Floats,
    curvature: Floats,
    known: int,
    direction: Floats,
) -> None:
    """Fill `direction` (modified in place): the two-loop recursion on free variables.

    Without pairs, or if that is no ascent direction, it is the gradient.
    """
    _free(price, slope, slope, direction)
    pairs = min(known, MEMORY)
    if pairs > 0:
        factor = np.zeros(MEMORY)
        for back in range(1, pairs + 1):
            k = (known - back) % MEMORY
            factor[k] = _dot(steps[k], direction) / curvature[k]
            _add(direction, -factor[k], changes[k])
        k = (known - 1) % MEMORY
        scale = curvature[k] / _dot(changes[k], changes[k])
        for t in range(len(direction)):
            direction[t] *= scale
        for back in range(pairs, 0, -1):
            k = (known - back) % MEMORY
            rest = factor[k] - _dot(changes[k], direction) / curvature[k]
            _add(direction, rest, steps[k])
        _free(price, slope, direction, direction)
        if _dot(direction, slope) > 0:
            return
        _free(price, slope, slope, direction)
    longest = 0.0
    dearest = 1e-12
    for t in range(len(price)):
        longest = max(longest, abs(direction[t]))
        dearest = max(dearest, price[t])
    if longest > 0:
        for t in range(len(price)):
            direction[t] *= FIRST * dearest / longest


@kernel
def _free(price: Floats, slope: Floats, wanted: Floats, direction: Floats) -> None:
    """Fill `direction` (modified in place): `wanted` for free variables, else 0."""
    for t in range(len(price)):
        direction[t] = wanted[t] if price[t] > 0 or slope[t] > 0 else 0.0


@kernel
def _line_search(
    problem: WindowProblem,
    price: Floats,
    value: float,
    slope: Floats,
    direction: Floats,
    enough: float,
    new_price: Floats,
    new_slope: Floats,
    mean: Floats,
    variance: Floats,
) -> float:
    """Shorten the projected step until it satisfies `ARMIJO`.

    Then triple it while the slope at its end is steep and the value rises. Fills
    `new_price` and `new_slope` (modified in place) and returns their value, which is
    the old one if no step is accepted.
    """
    length = 1.0
    new_value = value
    promised = 0.0
    good = False
    for _ in range(SHORTER):
        _move(price, length, direction, new_price)
        promised = _dot(slope, new_price) - _dot(slope, price)
        if promised <= 0:
            return value
        new_value = _value(problem, new_price, new_slope, mean, variance)
        good = new_value >= value + ARMIJO * promised
        if good:
            break
        # Maximum of the parabola through both values, clipped.
        bend = value + promised - new_value
        length *= min(max(promised / (2 * bend), 0.1), 0.5)
    if not good:
        return value
    steepness = STEEP * promised / length
    for _ in range(LONGER):
        ahead = 0.0
        for t in range(len(price)):
            if new_price[t] > 0:
                ahead += new_slope[t] * direction[t]
        if ahead < steepness or new_value >= enough:
            break
        before = new_value
        length *= 3
        _move(price, length, direction, new_price)
        new_value = _value(problem, new_price, new_slope, mean, variance)
        if new_value <= before:  # back to the step before
            _move(price, length / 3, direction, new_price)
            return _value(problem, new_price, new_slope, mean, variance)
    return new_value
