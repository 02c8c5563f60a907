"""What a policy is: what it sees, and what it answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.rules import StepRules
    from sortedf.step_time import StepTime


class State(NamedTuple):
    """A snapshot before a step. Nothing in it may be changed.

    Attributes
    ----------
    step : int
        Steps done so far.
    now_s : float
        The clock, in seconds (in steps, where a step is the unit).
    running : int64 array
        Ids of the running requests in the engine's order: tokens and blocks of a step
        are given out from the front, and who has to go is taken from the back.
    requests : RequestView
        What is known of every request, by id.
    free_blocks : int
        KV blocks that nobody holds.
    joined, left : sequences of int
        Ids that began to wait and that no longer wait, since the last decision.
    quiet : bool
        Whether nothing happened since the last decision but that each running request
        made one token in each step.
    rules : StepRules
    step_time : StepTime
        Seconds that a step takes.
    ended : sequence of int
        Ids that were done or cancelled since the last decision, whether they ran or
        waited. What the table says of them is still there.
    changed : sequence of int
        Ids of requests, waiting or running, whose predicted length or score is another
        since the last decision.
    who_waits : collection of int
        Ids of all waiting requests; see `is_waiting` and `waiting`.
    """

    step: int
    now_s: float
    running: NDArray[np.int64]
    requests: RequestView
    free_blocks: int
    joined: Sequence[int]
    left: Sequence[int]
    quiet: bool
    rules: StepRules
    step_time: StepTime
    who_waits: Collection[int]
    ended: Sequence[int] = ()
    changed: Sequence[int] = ()

    def is_waiting(self, i: int) -> bool:
        """Whether request `i` waits."""
        return i in self.who_waits

    @property
    def num_waiting(self) -> int:
        """How many requests wait."""
        return len(self.who_waits)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Ids of all waiting requests, in no particular order."""
        return np.fromiter(self.who_waits, dtype=np.int64, count=len(self.who_waits))


class Decision(NamedTuple):
    """What is to be done in a step, in this order.

    Attributes
    ----------
    evict : sequence of int
        Running requests that lose their KV and wait again.
    order : sequence of int, optional
        The requests that still run, in the order in which they are served; as it is if
        left out.
    start : sequence of int
        Waiting requests to start, in this order, up to the first that does not fit.
    wake_s : float, optional
        When to ask again if nothing runs and nothing was started.
    quiet_until, quiet_until_s : float
        For how long the policy need not be asked again, once all of `start` have
        started: in steps below the one and that begin before the other, its answer
        would be to do nothing, as long as nothing happens but that each running request
        makes a token. By default it is asked before every step. Whoever is not sure
        must not say more: the answer has to be the same whether the engine asks or not.
    """

    evict: Sequence[int] = ()
    order: Sequence[int] | None = None
    start: Sequence[int] = ()
    wake_s: float | None = None
    quiet_until: float = 0
    quiet_until_s: float = math.inf

    def stands(self, step: int, now_s: float) -> bool:
        """Whether a policy that gave this answer need not be asked before a step."""
        return step < self.quiet_until and now_s < self.quiet_until_s


NOTHING = Decision()
"""The decision to leave everything as it is in the coming step."""

UNTIL_EVENT = Decision(quiet_until=math.inf)
"""The decision to leave everything as it is until something happens."""


class Policy(Protocol):
    """Decides before each step which requests start and which are evicted.

    One object serves one run, in the simulator or in an engine. It is asked before
    every step, or, where its last answer says so (`Decision.quiet_until`), only when
    something has happened. So it may keep what it derives from the snapshots (a sorted
    queue) as long as `joined`, `left` and `changed` are applied to it; it never changes
    a snapshot.
    """

    def decide(self, state: State) -> Decision:
        """Answer what is to be done in the step that follows `state`."""
        ...
