"""Smallest volume first by the lengths of completed answers only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from online.answer_lengths import AnswerLengths
from online.policies.parts.boost_queue import BoostQueue
from online.policies.parts.expected_room import ExpectedRoom
from online.policies.parts.listed import fitting_head
from online.policy import register_policy
from online.state import NOTHING, Decision

if TYPE_CHECKING:
    from online.state import State

LONGEST = 2**16
"""Largest length of an answer distinguished."""

LOOK_EVERY = 16
"""Steps after which expected usage is evaluated again without an event."""


class Blind:
    """Starts the head of a queue as far as it fits the expected usage.

    It decides again at each event, and every `LOOK_EVERY` steps without one, since the
    expected usage changes with the tokens of the running requests.

    Parameters
    ----------
    queue : BoostQueue
    room : ExpectedRoom
    """

    def __init__(self, queue: BoostQueue, room: ExpectedRoom) -> None:
        self._queue = queue
        self._room = room
        self._standing = NOTHING

    def decide(self, state: State) -> Decision:
        """Start the head of the queue."""
        if state.quiet and self._standing.stands(state.step, state.now_s):
            return self._standing
        self._queue.update(state)
        start = self._room.admit(state, fitting_head(state, self._queue))
        if start:
            self._standing = NOTHING
            return Decision(start=start)
        until = state.step + LOOK_EVERY if state.num_waiting else math.inf
        self._standing = Decision(quiet_until=until)
        return self._standing


@register_policy("svf-blind", about="svf-boost by completed answers", knows="nothing")
def svf_blind(
    share: float = 0.5, gamma: float | None = None, margin: float = 1.0
) -> Blind:
    """`svf-boost` with answer lengths estimated from completed answers.

    The expected volume of a request is computed from its prompt and the mean and mean
    square of the completed answers. It starts if it fits beside the expected KV usage
    in every future step, by the histogram of these answers. No model is trained. If the
    forecast is wrong the engine preempts.

    Parameters
    ----------
    share, gamma
        See `svf_boost`.
    margin : float
        Standard deviations of the expected usage to keep free.
    """
    answers = AnswerLengths(LONGEST)
    return Blind(BoostQueue(share, gamma, answers), ExpectedRoom(answers, margin))
