"""Who finished, seen from the snapshots alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from online.state import State


class Departure(NamedTuple):
    """A request that is done.

    Attributes
    ----------
    response_s : float
        From its arrival to the snapshot after its last token.
    made : int
        Tokens of its answer.
    """

    response_s: float
    made: int


class Departures:
    """Tells which requests finished between two snapshots.

    Who ran and neither runs nor waits has made its last token in the step before. (Or
    it was cancelled, which cannot be told from here.)
    """

    def __init__(self) -> None:
        self._ran: dict[int, tuple[float, int]] = {}
        self._step = 0

    def update(self, state: State) -> list[Departure]:
        """Take in a snapshot; return who is done since the last one."""
        if state.quiet:
            return []
        requests, running = state.requests, state.running
        # In the quiet steps since the last look all have made one token each.
        steps = state.step - self._step
        now = running.tolist()
        still = set(now)
        fresh = {i for i in state.joined if requests.preemptions[i] == 0}
        found = [
            Departure(state.now_s - arrival_s, made + steps)
            for i, (arrival_s, made) in self._ran.items()
            # An id that waits for the first time is another request's by now.
            if i not in still and (i in fresh or not state.is_waiting(i))
        ]
        found += [  # who started and was done in one step
            Departure(state.now_s - requests.arrival_s[i], int(requests.made[i]))
            for i in state.left
            if not (i in still or i in self._ran or i in fresh or state.is_waiting(i))
        ]
        arrivals = requests.arrival_s[running].tolist()
        made_now = requests.made[running].tolist()
        self._ran = dict(zip(now, zip(arrivals, made_now, strict=True), strict=True))
        self._step = state.step
        return found
