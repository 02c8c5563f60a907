"""Smallest volume first with age: one parameter trades mean against tail."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy
from online.policies.parts.ranked_queue import RankedQueue
from online.policies.parts.work import engine_work_s
from online.policy import register_policy
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class DueQueue:
    """Waiting requests by due date: arrival plus `patience` times their work.

    The work of a request is the time for which it alone keeps the engine busy; see
    `engine_work_s`. It depends on the engine's rules and step times, which come with
    the snapshots; with new step times all requests are ranked again.

    Parameters
    ----------
    patience : float
    """

    def __init__(self, patience: float) -> None:
        if not (math.isfinite(patience) and patience >= 0):
            raise ValueError(f"patience = {patience} but must be a number, 0 or more.")
        self.patience = patience
        self._rules = EngineModel.vllm(1)
        self._time: StepTime = UNIT_STEPS
        self._queue = RankedQueue(self._due_s)

    def update(self, state: State) -> None:
        """Apply what joined and left since the last decision."""
        retimed = state.step_time is not self._time
        self._rules, self._time = state.rules, state.step_time
        self._queue.update(state)
        if retimed:
            self._queue.rank_again(state)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        return self._queue.head(count)

    def _due_s(self, requests: RequestView, ids: Ints) -> Floats:
        work_s = engine_work_s(
            requests.prefill[ids], ranks.volume(requests, ids), self._rules, self._time
        )
        return np.asarray(ranks.arrival(requests, ids) + self.patience * work_s)


@register_policy(
    "svf-aged", about="smallest volume first, discounted by age", knows="a length"
)
def svf_aged(
    patience: float = 100.0, admission: Admission = "look-ahead", backfill: int = 0
) -> ListPolicy:
    """Earliest due date first, where a due date grows with a request's volume.

    A request is due at `a + patience * w`, with `w` the seconds for which it alone
    would keep the engine busy (its memory-time volume over the cache, and its prompt).
    First come, first served for 0, smallest volume first for a large `patience`; in
    between the mean stays near the latter's and the tail near the former's. Requests
    that arrive after a request's due date come after it, so its wait is bounded by its
    own size: no starvation, without a threshold to set. Not preemptive, and with
    look-ahead and correct lengths no request is ever preempted.

    Parameters
    ----------
    patience : float
        Seconds of waiting per second of work.
    admission, backfill
        See `ListPolicy`.
    """
    return ListPolicy(DueQueue(patience), admission, backfill)
