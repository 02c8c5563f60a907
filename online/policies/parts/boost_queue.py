"""Boost by memory-time volume: UniBoost's score with SVF's measure of work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts import ranks
from online.policies.parts.boost import FIRST_COME, boost, checked_gamma
from online.policies.parts.ranked_queue import RankedQueue
from online.policies.parts.responses import ended_lengths
from online.policies.parts.work import engine_work_s
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.answer_lengths import AnswerLengths
    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CLOSE = 1.25
"""Ratio of new to old gamma up to which the queue is not sorted again."""


class Backlog:
    """Work of all waiting requests, in seconds."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._work_s: dict[int, float] = {}

    def replace(self, ids: Ints, work_s: Floats) -> None:
        """Add requests, or update their work."""
        for i, work in zip(ids.tolist(), work_s.tolist(), strict=True):
            self.total_s += work - self._work_s.get(i, 0.0)
            self._work_s[i] = work

    def drop(self, i: int) -> None:
        """Remove a request that no longer waits."""
        self.total_s -= self._work_s.pop(i, 0.0)
        if not self._work_s:
            self.total_s = 0.0  # removes rounding errors


class BoostQueue:
    """Waiting requests by arrival minus the boost of their work for the whole engine.

    Parameters
    ----------
    share : float
        `1 / gamma`, the time by which small requests may overtake others, as a multiple
        of the backlog's work.
    gamma : float, optional
        A fixed value instead, in 1/seconds.
    answers : AnswerLengths, optional
        Distribution of answer lengths, used instead of predicted lengths.
    """

    def __init__(
        self, share: float, gamma: float | None, answers: AnswerLengths | None = None
    ) -> None:
        if not (math.isfinite(share) and share > 0):
            raise ValueError(f"share = {share} but must be a number above 0.")
        self.share = share
        self.gamma = FIRST_COME if gamma is None else checked_gamma(gamma)
        self._fixed = gamma is not None
        self._answers = answers
        self._backlog = Backlog()
        self._rules = EngineModel.vllm(1)
        self._time: StepTime = UNIT_STEPS
        self._queue = RankedQueue(self._score)

    def update(self, state: State) -> None:
        """Apply what joined, left and changed; sort again if all scores changed."""
        retimed = state.step_time is not self._time
        self._rules, self._time = state.rules, state.step_time
        refreshed = self._learn(state) or retimed
        self._count(state, refreshed)
        self._queue.update(state)
        if self._adapt() or refreshed:
            self._queue.rank_again(state)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        return self._queue.head(count)

    def _learn(self, state: State) -> bool:
        """Observe completed answers; return whether their means have changed."""
        if self._answers is None:
            return False
        before = self._answers.count
        self._answers.observe(ended_lengths(state))
        return self._answers.count > before

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
        """Adapt gamma to the backlog; return whether it has changed."""
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
