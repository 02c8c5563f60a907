"""The static ranks: what a list policy sorts its queue by, lower first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def arrival(requests: RequestView, ids: Ints) -> Floats:
    """First come, first served."""
    return np.asarray(requests.arrival_s[ids])


def decode(requests: RequestView, ids: Ints) -> Floats:
    """Shortest answer first (MC-SF's order)."""
    return np.asarray(requests.predicted[ids], dtype=np.float64)


def total_size(requests: RequestView, ids: Ints) -> Floats:
    """Smallest prompt and answer together first."""
    size = requests.prefill[ids] + requests.predicted[ids]
    return np.asarray(size, dtype=np.float64)


def volume(requests: RequestView, ids: Ints) -> Floats:
    """Smallest memory-time volume first (SVF): `s o + o (o + 1) / 2`."""
    s, o = requests.prefill[ids], requests.predicted[ids].astype(np.float64)
    return np.asarray(s * o + o * (o + 1) / 2)


def learned(requests: RequestView, ids: Ints) -> Floats:
    """Lowest learned score first; who has none comes after those that have."""
    return np.asarray(np.nan_to_num(requests.score[ids], nan=np.inf))
