"""Drawing pairs of lengths with given distributions and rank correlation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.generator.quantiles import Anchors, Population


def draw_mixture(
    n: int, parts: tuple[tuple[float, Population], ...], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw `n` requests, each from one of the populations, by their shares."""
    part = rng.choice(len(parts), size=n, p=[share for share, _ in parts])
    prefill, decode = np.empty((2, n), dtype=np.int64)
    for k, (_, population) in enumerate(parts):
        mine = np.flatnonzero(part == k)
        prefill[mine], decode[mine] = draw_pairs(len(mine), population, rng)
    return prefill, decode


def draw_pairs(
    n: int, population: Population, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw prefill and decode of `n` requests, joined by a Gaussian copula."""
    prefill, decode = _free_pairs(n, population, rng)
    if population.max_total is not None:
        while len(over := np.flatnonzero(prefill + decode > population.max_total)):
            prefill[over], decode[over] = _free_pairs(len(over), population, rng)
    return prefill, decode


def lengths_at(anchors: Anchors, share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Inverse CDF of the lengths at the given shares.

    Rounded up, so that the shares at anchors and atoms are met exactly.
    """
    value, cumulative = np.array(anchors).T
    length = np.exp(np.interp(share, cumulative, np.log(value)))
    whole: NDArray[np.int64] = np.ceil(length - 1e-6).astype(np.int64)
    return whole


def _free_pairs(
    n: int, population: Population, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from scipy.special import ndtr  # not at the top: slow to import

    # The Pearson correlation of normals that have this rank correlation.
    r = 2 * math.sin(math.pi * population.spearman / 6)
    first, other = rng.standard_normal((2, n))
    second = r * first + math.sqrt(1 - r * r) * other
    prefill = lengths_at(population.prefill, ndtr(first))
    decode = lengths_at(population.decode, ndtr(second))
    return prefill, decode
