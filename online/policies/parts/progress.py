"""How far requests have come, in tokens and in seconds of service."""

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
    """The most tokens that each request has made, and what they are worth.

    It never falls: where an eviction loses tokens, the request counts as having made
    them, so that with each turn it comes further than with any before, and taking turns
    comes to an end.
    """

    def __init__(self) -> None:
        self._most: Ints = np.zeros(0, dtype=np.int64)
        self._ran: Ints = self._most
        self._made: Ints = self._most  # by those that ran, at the last look
        self._step = 0
        self._time: StepTime = UNIT_STEPS

    def update(self, state: State) -> None:
        """Take in a snapshot."""
        self._time = state.step_time
        self._most = grown(self._most, state)
        # In the quiet steps since the last look all that ran have made a token each,
        # which whoever lost its KV in the last step has made as well.
        then = self._made + max(state.step - self._step - 1, 0)
        self._most[self._ran] = np.maximum(self._most[self._ran], then)
        if state.joined:
            self._most[newcomers(state)] = 0
        running = state.running
        made = state.requests.output_tokens[running]
        self._most[running] = np.maximum(self._most[running], made)
        self._ran, self._made, self._step = running, made, state.step

    def output_tokens(self, ids: Ints) -> Ints:
        """Most tokens made so far."""
        return np.asarray(self._most[ids])

    def answer_s(self, tokens: float) -> float:
        """Seconds of service that tokens of an answer are worth."""
        return self._time.work(0, tokens)

    def prompt_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Seconds of service that each prompt is worth."""
        return np.asarray(requests.prefill[ids] * self._time.work(1, 0))

    def attained_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Effective work of UniBoost: service attained, the prompt's at the least.

        A prompt counts before it is processed. Its work is known from the start, and a
        request does not get worse while its prompt goes on, which could take its turn
        before it has made a token.
        """
        tokens = self.output_tokens(ids) * self._time.work(0, 1)
        return np.asarray(self.prompt_s(requests, ids) + tokens)

    def tokens_to_next(self, state: State, first: int) -> int:
        """Tokens that those that run can make, each, below their next threshold.

        Parameters
        ----------
        state : State
        first : int
            The first threshold of attained service, as tokens of an answer.
        """
        running = state.running
        if not len(running):
            return 0
        first_s = self.answer_s(first)
        attained_s = self.attained_s(state.requests, running)
        next_s = np.ldexp(first_s, level(attained_s, first_s))
        return int((next_s - attained_s).min() / self.answer_s(1))
