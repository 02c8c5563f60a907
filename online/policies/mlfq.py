"""Multi-level feedback queues by attained service, with doubling quanta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.geometric import level
from online.policies.parts.preempting import Preempting
from online.policies.parts.progress import Progress
from online.policy import register_policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]


class Levels:
    """Scores requests by the number of their queue.

    Parameters
    ----------
    quantum : int
        Quantum of the first queue, in output tokens.
    """

    def __init__(self, quantum: int) -> None:
        if not quantum >= 1:
            raise ValueError(f"quantum = {quantum} but must be at least 1 token.")
        self.quantum = quantum
        self.progress = Progress()

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether every score changed."""
        return self.progress.update(state)

    def score(self, requests: RequestView, ids: Ints) -> NDArray[np.float64]:
        """Return the number of each queue; a long prompt skips the first ones."""
        attained = self.progress.attained_s(requests, ids)
        queue = level(attained, self.progress.answer_s(self.quantum))
        return np.asarray(queue, dtype=np.float64)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Return False for all requests."""
        return np.zeros(len(ids), dtype=np.bool_)

    def same_until(self, state: State) -> float:
        """Step in which the first running request may move down."""
        return state.step + self.progress.tokens_to_next(state, self.quantum)


@register_policy("mlfq", about="queues of doubling quanta", knows="nothing")
def mlfq(quantum: int = 32, headroom: int = 0) -> Preempting:
    """Multi-level feedback queues, as in FastServe (arXiv 2305.05920).

    A request moves down one queue when its attained service, with its prompt's, reaches
    `quantum`, twice that, four times that, ...; a lower queue gets only the capacity
    that the higher ones leave, each by arrival. The evictions of a request are at most
    logarithmic in its service, except those caused by arrivals in higher queues.

    Parameters
    ----------
    quantum : int
        The first quantum, in output tokens.
    headroom : int
        Steps of growth for which blocks stay free when a request starts.
    """
    return Preempting(Levels(quantum), headroom=headroom)
