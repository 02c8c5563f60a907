"""A distribution as values with counts, so that a token need not be listed alone."""

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
    """What is reported of a distribution."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Distribution:
    """Observations, sorted and counted.

    A quantile is the smallest observation that at least the given share of all do not
    exceed: always a value that was observed, whether listed singly or counted.

    Parameters
    ----------
    value : array_like of float, shape (k,)
    count : array_like of int, shape (k,), optional
        How often each value was observed; once if left out.
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
        """How many there are."""
        return int(self.num_below[-1]) if len(self.num_below) else 0

    @property
    def mean(self) -> float:
        """Mean of all observations; nan if there are none."""
        if not self.num_observations:
            return math.nan
        counts = np.diff(self.num_below, prepend=0)
        # Not by `@`, whose last bits depend on the number of threads.
        return float((self.value * counts).sum()) / self.num_observations

    def quantile(self, share: float) -> float:
        """Smallest observation that at least `share` of all do not exceed."""
        # Rounded, as 0.1 * 30 is a little above 3 in floating point.
        rank = max(1, math.ceil(round(share * self.num_observations, 6)))
        return float(self.value[np.searchsorted(self.num_below, rank)])

    def share_within(self, limit: ArrayLike) -> Floats:
        """Share of the observations that are at most each of the limits."""
        padded = np.concatenate([[0], self.num_below])
        at_most = padded[np.searchsorted(self.value, limit, side="right")]
        return np.asarray(at_most / max(self.num_observations, 1))

    def summary(self) -> DistributionSummary | None:
        """Mean, quantiles and maximum; None if nothing was observed."""
        if not self.num_observations:
            return None
        quantiles = (self.quantile(share) for share in (0.5, 0.9, 0.95, 0.99, 1.0))
        return DistributionSummary(self.mean, *quantiles)
