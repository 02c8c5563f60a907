"""Progress of requests, in tokens and in seconds of service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.by_id import grown, newcomers
from online.policies.parts.geometric import level
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class Progress:
    """The most output tokens that each request has ever had, and their work.

    It never falls: tokens lost by an eviction still count, so that a request makes
    progress with each run, and mutual evictions of requests come to an end.
    """

    def __init__(self) -> None:
        self._most: Ints = np.zeros(0, dtype=np.int64)
        self._ran: Ints = self._most
        self._output_tokens: Ints = (
            self._most
        )  # output tokens of `_ran` at the last update
        self._step = 0
        self._time: StepTime = UNIT_STEPS

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether it has other step times."""
        retimed = state.step_time is not self._time
        self._time = state.step_time
        self._most = grown(self._most, state)
        # In each quiet step since the last update every running request made a token,
        # including those that lost their KV in the last step.
        then = self._output_tokens + max(state.step - self._step - 1, 0)
        self._most[self._ran] = np.maximum(self._most[self._ran], then)
        if state.joined:
            self._most[newcomers(state)] = 0
        running = state.running
        output_tokens = state.requests.output_tokens[running]
        self._most[running] = np.maximum(self._most[running], output_tokens)
        self._ran, self._output_tokens, self._step = running, output_tokens, state.step
        return retimed

    def output_tokens(self, ids: Ints) -> Ints:
        """Most output tokens so far."""
        return np.asarray(self._most[ids])

    def answer_s(self, tokens: float) -> float:
        """Service of output tokens, in seconds."""
        return self._time.work(0, tokens)

    def prompt_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Service of each prompt, in seconds."""
        return np.asarray(requests.prefill[ids] * self._time.work(1, 0))

    def attained_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Effective work of UniBoost: attained service, at least the prompt's.

        A prompt counts before it is processed. Its work is known from the start, and
        the score of a request does not get worse during its prefill, which could
        otherwise cause an eviction before the first token.
        """
        tokens = self.output_tokens(ids) * self._time.work(0, 1)
        return np.asarray(self.prompt_s(requests, ids) + tokens)

    def tokens_to_next(self, state: State, first: int) -> int:
        """Tokens that each running request can make below its next threshold.

        Parameters
        ----------
        state : State
        first : int
            The first threshold of attained service, in output tokens.
        """
        running = state.running
        if not len(running):
            return 0
        first_s = self.answer_s(first)
        attained_s = self.attained_s(state.requests, running)
        next_s = np.ldexp(first_s, level(attained_s, first_s))
        return int((next_s - attained_s).min() / self.answer_s(1))
