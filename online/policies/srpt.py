"""Shortest remaining answer first, preemptive, with a limit on late preemption."""

from __future__ import annotations

import math
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


class Remaining:
    """Scores requests by remaining tokens of the predicted length.

    Parameters
    ----------
    limit : float
        Share of its predicted length after which a request is no longer evicted.
    """

    def __init__(self, limit: float) -> None:
        if not limit >= 0:
            raise ValueError(f"limit = {limit} but must be at least 0.")
        self.limit = limit
        self.progress = Progress()

    def update(self, state: State) -> bool:
        """Update from a snapshot."""
        if self.limit < math.inf:
            self.progress.update(state)
        return False

    def score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        """Remaining tokens; 1 for a request that has exceeded its prediction."""
        left = requests.predicted[ids] - requests.output_tokens[ids]
        return np.asarray(np.maximum(left, 1), dtype=np.float64)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Whether each request has reached `limit` of its predicted length."""
        if self.limit == math.inf:
            return np.zeros(len(ids), dtype=np.bool_)
        enough = self.limit * requests.predicted[ids]
        return np.asarray(self.progress.output_tokens(ids) >= enough)

    def same_until(self, state: State) -> float:
        """Step in which a running request ties with another or becomes protected.

        Each token lowers the scores of all running requests by one, below those of
        waiting ones and without changing their order; but requests that exceed their
        prediction stay at 1, which the others can reach.
        """
        running, requests = state.running, state.requests
        if not len(running):
            return math.inf
        left = requests.predicted[running] - requests.output_tokens[running]
        behind = left[left > max(int(left.min()), 1)]
        until = state.step + int(behind.min()) - 1 if len(behind) else math.inf
        if self.limit < math.inf:
            enough = np.ceil(self.limit * requests.predicted[running])
            more = enough - self.progress.output_tokens(running)
            until = min(until, state.step + more[more > 0].min(initial=math.inf))
        return until


@register_policy("srpt", about="shortest remaining answer first", knows="a length")
def srpt(
    limit: float = float("inf"), hysteresis: float = 0.0, headroom: int = 0
) -> Preempting:
    """Shortest remaining processing time, by true or predicted answer lengths.

    With true lengths and free preemption it has the least mean response time on one
    machine; here a machine runs many requests at once and each eviction costs the KV.
    With a `limit` below 1 it corresponds to TRAIL (arXiv 2410.01035), which does not
    preempt a request that has made that share of its predicted length (0.8 there).

    Parameters
    ----------
    limit : float
        Share of its predicted length after which a request is no longer evicted; no
        limit if left out.
    hysteresis : float
        Tokens by which a waiting request must be shorter than one evicted for it.
    headroom : int
        Steps of growth for which blocks stay free when a request starts.
    """
    return Preempting(Remaining(limit), hysteresis=hysteresis, headroom=headroom)
