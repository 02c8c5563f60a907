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
    """Scores by the tokens that are yet to make, by the predicted length.

    Parameters
    ----------
    limit : float
        Part of its predicted length after which a request is not evicted any more.
    """

    def __init__(self, limit: float) -> None:
        if not limit >= 0:
            raise ValueError(f"limit = {limit} but must be at least 0.")
        self.limit = limit
        self.progress = Progress()

    def update(self, state: State) -> bool:
        """Take in a snapshot."""
        if self.limit < math.inf:
            self.progress.update(state)
        return False

    def score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        """Tokens left; 1 for a request that has outlived its prediction."""
        left = requests.predicted[ids] - requests.output_tokens[ids]
        return np.asarray(np.maximum(left, 1), dtype=np.float64)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Those that have made enough of what was predicted."""
        if self.limit == math.inf:
            return np.zeros(len(ids), dtype=np.bool_)
        enough = self.limit * requests.predicted[ids]
        return np.asarray(self.progress.output_tokens(ids) >= enough)

    def same_until(self, state: State) -> float:
        """Until one that runs draws level with another, or is protected.

        With each token all of them are further ahead of who waits, and none overtakes
        another; but those that outlive their prediction stay at 1, where the others
        come as well.
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
    With a `limit` below 1 it plays the part of TRAIL (arXiv 2410.01035), which stops
    preempting a request that has made that part of its predicted length (0.8 there).

    Parameters
    ----------
    limit : float
        Part of its predicted length after which a request is not evicted any more;
        without a limit if left out.
    hysteresis : float
        Tokens by which a waiting request has to be shorter than one that goes for it.
    headroom : int
        Steps of growth that stay free when a request starts.
    """
    return Preempting(Remaining(limit), hysteresis=hysteresis, headroom=headroom)
