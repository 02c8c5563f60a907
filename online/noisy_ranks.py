"""Synthetic ranks with a given Kendall's tau_b.

A rank is a mixture of the true order and noise. Its tau_b is measured on the lengths
that it ranks, as for a learned rank, so that the two are comparable.
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
"""Bisection steps at most: with ties in the lengths the target may be impossible."""


def noisy_rank(
    lengths: Ints,
    target: float,
    rng: np.random.Generator,
    make: Callable[[Floats], Floats] = lambda scores: scores,
) -> Floats:
    """Draw scores whose tau_b with the lengths is `target`.

    Order and noise are mixed. The mixture rotates by an angle from the order over the
    noise to the reversed order. Every pair of requests is swapped once on the way, so
    tau_b only falls, and the angle is found by bisection.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
    target : float
        From -1 to 1: 1 for the true order, -1 for the reversed one, 0 for no relation.
        Equal lengths get equal scores only at 1 and -1, so with many equal lengths
        other targets near 1 and -1 cannot be reached; the nearest one is used.
    rng : Generator
    make : callable
        Turns a mixture into the scores; monotone.

    Returns
    -------
    float64 array, shape (n,)
        Lower first.
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
        drawn = make(math.cos(angle) * order + math.sin(angle) * noise)
        off = tau_b(drawn, lengths) - target
        if abs(off) < distance:
            nearest, distance = drawn, abs(off)
        if distance <= NEAR_ENOUGH:
            break
        low, high = (angle, high) if off > 0 else (low, angle)
    return nearest


def noisy_lengths(lengths: Ints, target: float, rng: np.random.Generator) -> Ints:
    """Permute the lengths so that tau_b with the true ones is `target`.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
    target : float
        From -1 to 1.
    rng : Generator
    """
    ascending = np.sort(lengths).astype(np.float64)

    def permute(scores: Floats) -> Floats:
        permuted = np.empty_like(ascending)
        # Among equal scores the longer request gets the longer length.
        permuted[np.lexsort((lengths, scores))] = ascending
        return permuted

    return noisy_rank(lengths, target, rng, permute).astype(np.int64)


def _normal_scores(lengths: Ints) -> Floats:
    """Quantiles of the standard normal at the ranks; equal lengths share one."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(lengths) - 0.5) / max(len(lengths), 1)))
