"""The boost of UniBoost, and its parameter from what was observed."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

FIRST_COME = math.inf
"""The `gamma` without boost: first come, first served."""

WINDOW = 1000
"""Response times to which an adaptive gamma is fitted."""

TINY = 1e-300
"""Value of `gamma w` below which the boost is constant, so that it is finite."""


def boost(work_s: Floats, gamma: float) -> Floats:
    """`b(w) = (1/gamma) ln(1 / (1 - exp(-gamma w)))`, in seconds; falls with `w`.

    0 everywhere for an infinite `gamma`; for a small one the logarithm of `w` decides.
    """
    if math.isinf(gamma):
        return np.zeros(len(work_s))
    rest = -np.expm1(-gamma * np.maximum(work_s, TINY / gamma))
    return np.asarray(-np.log(rest) / gamma)


def checked_gamma(gamma: float) -> float:
    """Return `gamma`; raise ValueError unless it is positive."""
    if not gamma > 0:
        raise ValueError(f"gamma = {gamma} but must be above 0, in 1/seconds.")
    return gamma


def tail_slope(response_s: ArrayLike) -> float | None:
    """Decay rate of the tail of response times, between P95 and P99.

    Least squares fit of `ln P(T > t)` against `t` over these observations; None if they
    do not determine a slope.
    """
    times = np.sort(np.asarray(response_s, dtype=np.float64))
    n = len(times)
    first, last = math.ceil(0.95 * n), math.ceil(0.99 * n)
    t = times[first:last]
    if len(t) < 2 or t[0] == t[-1]:
        return None
    above = np.log((n - np.arange(first, last)) / n)
    t = t - t.mean()
    return float(-(t @ (above - above.mean())) / (t @ t))


class FixedGamma:
    """A constant `gamma`."""

    def __init__(self, gamma: float) -> None:
        self.value = checked_gamma(gamma)

    def observe(self, response_s: Iterable[float]) -> bool:
        """Ignore response times; return False."""
        return False


class AdaptiveGamma:
    """Gamma-Ada: `gamma` is the slope of the log tail of observed response times.

    Until `window / 10` requests have completed there is no boost: first come, first
    served. Then it is fitted again after each further `window / 10` completions.

    Parameters
    ----------
    window : int
        Number of the last response times used.
    """

    def __init__(self, window: int) -> None:
        if not window >= 400:
            raise ValueError(
                f"window = {window} but must be at least 400, or too few of the "
                "response times lie between P95 and P99."
            )
        self.value = FIRST_COME
        self._every = window // 10
        self._seen: deque[float] = deque(maxlen=window)
        self._new = 0

    def observe(self, response_s: Iterable[float]) -> bool:
        """Add response times; return whether `value` has changed."""
        for t in response_s:
            self._seen.append(t)
            self._new += 1
        if self._new < self._every:
            return False
        self._new = 0
        slope = tail_slope(list(self._seen))
        if slope is None or slope == self.value:
            return False
        self.value = slope
        return True


def make_gamma(gamma: float | None, window: int) -> FixedGamma | AdaptiveGamma:
    """Return a fixed gamma, or an adaptive one if none is given."""
    return AdaptiveGamma(window) if gamma is None else FixedGamma(gamma)
