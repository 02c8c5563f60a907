"""Boost by memory-time volume: UniBoost's score on SVF's measure of work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.boost import FIRST_COME, boost, checked_gamma
from online.policies.parts.ranked_queue import RankedQueue
from online.policies.parts.work import engine_work_s
from online.rules import StepRules
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.policies.parts.answers import Answers
    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CLOSE = 1.25
"""Ratio of two values of gamma between which nothing is sorted anew."""


class Backlog:
    """Seconds of work of all that wait."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._work_s: dict[int, float] = {}

    def replace(self, ids: Ints, work_s: Floats) -> None:
        """Enter requests, or their new work."""
        for i, work in zip(ids.tolist(), work_s.tolist(), strict=True):
            self.total_s += work - self._work_s.get(i, 0.0)
            self._work_s[i] = work

    def drop(self, i: int) -> None:
        """Take out a request that no longer waits."""
        self.total_s -= self._work_s.pop(i, 0.0)
        if not self._work_s:
            self.total_s = 0.0  # without what rounding has left


class BoostQueue:
    """Waiting requests by arrival less the boost of their work for the whole engine.

    Parameters
    ----------
    share : float
        Time by which small requests may pass others, `1 / gamma`, in backlogs.
    gamma : float, optional
        Fixed, in 1/seconds, whatever the backlog.
    answers : Answers, optional
        Where lengths are learned and not told.
    """

    def __init__(
        self, share: float, gamma: float | None, answers: Answers | None = None
    ) -> None:
        if not (math.isfinite(share) and share > 0):
            raise ValueError(f"share = {share} but must be a number above 0.")
        self.share = share
        self.gamma = FIRST_COME if gamma is None else checked_gamma(gamma)
        self._fixed = gamma is not None
        self._answers = answers
        self._backlog = Backlog()
        self._rules = StepRules(1)
        self._time: StepTime = UNIT_STEPS
        self._queue = RankedQueue(self._score)

    def update(self, state: State) -> None:
        """Apply what joined, left and changed; sort anew if scores have changed."""
        self._rules, self._time = state.rules, state.step_time
        refreshed = self._answers is not None and self._answers.update(state)
        self._count(state, refreshed)
        self._queue.update(state)
        if self._adapt() or refreshed:
            self._queue.rank_again(state)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        return self._queue.head(count)

    def _count(self, state: State, refreshed: bool) -> None:
        for i in state.left:
            self._backlog.drop(i)
        if refreshed:
            ids = state.waiting
        else:
            fresh = dict.fromkeys([*state.joined, *state.changed])
            waiting = [i for i in fresh if state.is_waiting(i)]
            ids = np.array(waiting, dtype=np.int64)
        if len(ids):
            self._backlog.replace(ids, self._work_s(state.requests, ids))

    def _adapt(self) -> bool:
        """Let gamma follow the backlog; return whether it has changed."""
        if self._fixed:
            return False
        span_s = self.share * self._backlog.total_s
        wanted = 1 / span_s if span_s > 0 else FIRST_COME
        if wanted == self.gamma or 1 / CLOSE < wanted / self.gamma < CLOSE:
            return False
        self.gamma = wanted
        return True

    def _work_s(self, requests: RequestView, ids: Ints) -> Floats:
        prefill = requests.prefill[ids]
        if self._answers is None:
            volume = ranks.volume(requests, ids)
        else:
            mean, square = self._answers.mean, self._answers.square
            volume = prefill * mean + (square + mean) / 2
        return engine_work_s(prefill, volume, self._rules, self._time)

    def _score(self, requests: RequestView, ids: Ints) -> Floats:
        work_s = self._work_s(requests, ids)
        arrival_s: Floats = ranks.arrival(requests, ids)
        return arrival_s - boost(work_s, self.gamma)
