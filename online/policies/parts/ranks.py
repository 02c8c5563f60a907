"""Static ranks of list policies, lower first.

Each takes a `RequestView` with an array of ids, or its `each` with one id, which avoids
arrays for single requests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from online.requests import EachRequest, RequestView

    Fields = RequestView | EachRequest


def arrival(requests: Fields, ids: Any) -> Any:
    """First come, first served."""
    return requests.arrival_s[ids]


def decode(requests: Fields, ids: Any) -> Any:
    """Shortest answer first (MC-SF's order)."""
    return 1.0 * requests.predicted[ids]


def total_size(requests: Fields, ids: Any) -> Any:
    """Smallest sum of prompt and answer first."""
    return 1.0 * (requests.prefill[ids] + requests.predicted[ids])


def volume(requests: Fields, ids: Any) -> Any:
    """Smallest memory-time volume first (SVF): `s o + o (o + 1) / 2`."""
    s, o = requests.prefill[ids], 1.0 * requests.predicted[ids]
    return s * o + o * (o + 1) / 2


def learned(requests: Fields, ids: Any) -> Any:
    """Lowest learned score first; requests without a score come last."""
    return np.fmin(requests.score[ids], math.inf)
