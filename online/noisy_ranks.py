"""Ranks that are as wrong as one likes, measured by Kendall's tau_b.

A rank is a mixture of the true order and of noise. How well it sorts is measured as a
learned one is, on the very lengths that it ranks, so that the two can be compared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.kendall import tau_b

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEAR_ENOUGH = 5e-4
"""Distance from the target tau_b at which the search ends."""

HALVINGS = 40
"""Most halvings of the search: lengths with ties may not allow the target."""


def noisy_rank(lengths: Ints, target: float, rng: np.random.Generator) -> Floats:
    """Draw scores whose tau_b with the lengths is `target`.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
    target : float
        From -1 to 1: 1 for the true order, -1 for the reversed one, 0 for none. Only
        at the two ends do equal lengths get equal scores, so that with many equal
        lengths other targets near the ends are out of reach; the nearest is taken.
    rng : Generator

    Returns
    -------
    float64 array, shape (n,)
        Lower first.
    """
    return _search(lengths, target, rng, lambda scores: scores)


def noisy_lengths(lengths: Ints, target: float, rng: np.random.Generator) -> Ints:
    """Give the lengths out to others, so that tau_b with the true ones is `target`.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
    target : float
        From -1 to 1.
    rng : Generator
    """
    ascending = np.sort(lengths).astype(np.float64)

    def give_out(scores: Floats) -> Floats:
        given = np.empty_like(ascending)
        # Of equal scores the longer request gets the longer length.
        given[np.lexsort((lengths, scores))] = ascending
        return given

    return _search(lengths, target, rng, give_out).astype(np.int64)


def _search(
    lengths: Ints,
    target: float,
    rng: np.random.Generator,
    make: Callable[[Floats], Floats],
) -> Floats:
    """Mix order and noise until what is made of the mixture has the target tau_b.

    The mixture is turned by an angle from the order, by way of the noise, to the
    reversed order. On this way every two requests change places once, so that tau_b
    only falls, and halving finds the angle.
    """
    if not (math.isfinite(target) and -1 <= target <= 1):
        raise ValueError(f"target = {target} but must be from -1 to 1.")
    order = _normal_scores(lengths)
    noise = rng.standard_normal(len(lengths))
    if abs(target) == 1 or not order.any():
        return make(order * target if order.any() else noise)
    low, high = 0.0, math.pi
    nearest, distance = order, math.inf
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        made = make(math.cos(angle) * order + math.sin(angle) * noise)
        off = tau_b(made, lengths) - target
        if abs(off) < distance:
            nearest, distance = made, abs(off)
        if distance <= NEAR_ENOUGH:
            break
        low, high = (angle, high) if off > 0 else (low, angle)
    return nearest


def _normal_scores(lengths: Ints) -> Floats:
    """Quantiles of the standard normal at the ranks; equal lengths share one."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(lengths) - 0.5) / max(len(lengths), 1)))
