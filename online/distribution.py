"""Empirical distributions as values with counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DistributionSummary:
    """Mean, quantiles and maximum of a distribution."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Distribution:
    """Observations, sorted and counted.

    A quantile is the smallest observed value that at least the given share of the
    observations do not exceed.

    Parameters
    ----------
    value : array_like of float, shape (k,)
    count : array_like of int, shape (k,), optional
        Number of observations of each value; 1 if left out.
    """

    def __init__(self, value: ArrayLike, count: ArrayLike | None = None) -> None:
        values = np.asarray(value, dtype=np.float64)
        counts = np.ones(len(values), np.int64) if count is None else np.asarray(count)
        order = np.argsort(values, kind="stable")
        order = order[counts[order] > 0]
        self.value: Floats = values[order]
        self.num_below: NDArray[np.int64] = np.cumsum(counts[order])

    @property
    def num_observations(self) -> int:
        """Number of observations."""
        return int(self.num_below[-1]) if len(self.num_below) else 0

    @property
    def mean(self) -> float:
        """Mean of all observations; nan if there are none."""
        if not self.num_observations:
            return math.nan
        counts = np.diff(self.num_below, prepend=0)
        # Not by `@`, whose rounding depends on the number of threads.
        return float((self.value * counts).sum()) / self.num_observations

    def quantile(self, share: float) -> float:
        """Smallest observation that at least `share` of all do not exceed."""
        # Rounded because 0.1 * 30 exceeds 3 in floating point.
        rank = max(1, math.ceil(round(share * self.num_observations, 6)))
        return float(self.value[np.searchsorted(self.num_below, rank)])

    def share_within(self, limit: ArrayLike) -> Floats:
        """Share of the observations that are at most each of the limits."""
        padded = np.concatenate([[0], self.num_below])
        at_most = padded[np.searchsorted(self.value, limit, side="right")]
        return np.asarray(at_most / max(self.num_observations, 1))

    def summary(self) -> DistributionSummary | None:
        """Mean, quantiles and maximum; None without observations."""
        if not self.num_observations:
            return None
        quantiles = (self.quantile(share) for share in (0.5, 0.9, 0.95, 0.99, 1.0))
        return DistributionSummary(self.mean, *quantiles)
