"""Least attained service first, preemptive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.preempting import Preempting
from online.policies.parts.progress import Progress
from online.policy import register_policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]


class Attained:
    """Scores by the service attained, in seconds; see `Progress.attained_s`."""

    def __init__(self) -> None:
        self.progress = Progress()

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether every score changed."""
        return self.progress.update(state)

    def score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        """Seconds of service attained, at least the prompt's."""
        return self.progress.attained_s(requests, ids)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Return False for all requests."""
        return np.zeros(len(ids), dtype=np.bool_)

    def same_until(self, state: State) -> float:
        """Return the current step: scores change with every token."""
        return state.step


@register_policy("las", about="least attained service first", knows="nothing")
def las(hysteresis: float = 0.0, headroom: int = 0) -> Preempting:
    """Least attained service first, also called foreground-background.

    Score: `max(attained, work of the prompt)` in seconds. Without lengths it has the
    least mean response time if the hazard rate is decreasing and preemption is free;
    here each eviction costs the KV. It is UniBoost's limit for `gamma` to 0.

    Parameters
    ----------
    hysteresis : float
        Seconds of service by which a running request must be ahead to be evicted.
    headroom : int
        Steps of growth for which blocks stay free when a request starts.
    """
    return Preempting(Attained(), hysteresis=hysteresis, headroom=headroom)
