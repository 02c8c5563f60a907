"""SLO attainment: the share of requests served within a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.distribution import Distribution
from online.metrics import normalised_latency_s, ttft_s, ttlt_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from online.run_log import RunLog

    Floats = NDArray[np.float64]

LIMITED: dict[str, Callable[[RunLog], Floats]] = {
    "TTFT": ttft_s,
    "TTLT": ttlt_s,
    "normalised latency": normalised_latency_s,
}
"""Metrics that an SLO can limit."""


def attainment(log: RunLog, what: str, limit_s: ArrayLike) -> Floats:
    """Share of all requests whose metric is at most each of the limits.

    A request that was not completed meets no limit.

    Parameters
    ----------
    log : RunLog
    what : {"TTFT", "TTLT", "normalised latency"}
    limit_s : array_like of float
    """
    observed = LIMITED[what](log)
    share = Distribution(observed).share_within(limit_s)
    return np.asarray(share * len(observed) / len(log.decode))


def tightest_limit_s(log: RunLog, what: str, share: float = 0.99) -> float | None:
    """Smallest limit that the given share of all requests meets; None if there is none.

    The ratio of two policies' limits is the factor by which the better one allows a
    tighter SLO.
    """
    observed = np.sort(LIMITED[what](log))
    need = max(1, int(np.ceil(round(share * len(log.decode), 6))))
    return float(observed[need - 1]) if need <= len(observed) else None
