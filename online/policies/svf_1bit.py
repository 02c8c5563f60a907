"""One-bit smallest volume first: only small or large is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.listed import ListPolicy
from online.policies.parts.ranked_queue import RankedQueue
from online.policy import register_policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView


@register_policy("svf-1bit", about="small requests before large ones", knows="one bit")
def one_bit(threshold: float = 150_000.0) -> ListPolicy:
    """Small requests before large ones, by arrival within each.

    The one-bit form of smallest volume first (arXiv 2606.22327): it only uses whether a
    request's volume `s o + o (o + 1) / 2` is above a threshold. Admission is the
    engine's, since lengths are not known.

    Parameters
    ----------
    threshold : float
        Largest volume of a small request, in token steps.
    """
    if not (math.isfinite(threshold) and threshold >= 0):
        raise ValueError(f"threshold = {threshold} but must be a number, 0 or more.")

    def rank(requests: RequestView, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(ranks.volume(requests, ids) > threshold, dtype=np.float64)

    return ListPolicy(RankedQueue(rank), "engine")
