"""Interface of a policy: the state it gets and the decision it returns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from online.prefix_forest import PrefixForest
    from online.requests import RequestView
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime


class State(NamedTuple):
    """Snapshot before a step; read-only.

    Attributes
    ----------
    step : int
        Steps done so far.
    now_s : float
        The clock, in seconds, or in steps with unit steps.
    running : int64 array
        Ids of the running requests in the engine's order: tokens and blocks of a step
        are allocated from the front, and requests are preempted from the back.
    requests : RequestView
        Data of every request, by id.
    free_blocks : int
        KV blocks that no running request holds.
    joined, left : sequences of int
        Ids that started waiting and that stopped waiting since the last decision.
    quiet : bool
        Whether since the last decision the only events were that each running request
        made one token in each step.
    rules : EngineModel
    step_time : StepTime
        Step-time model. In a real engine it is measured, so that a later snapshot can
        have another object.
    ended : sequence of int
        Ids of running or waiting requests that completed or were cancelled since the
        last decision. Their data is still in the table.
    changed : sequence of int
        Ids of waiting or running requests whose predicted length or score has changed
        since the last decision.
    waiting_ids : collection of int
        Ids of all waiting requests; see `is_waiting` and `waiting`.
    prefixes : PrefixForest, optional
        Shared prefixes of requests, in an engine with prefix caching. Cached blocks
        that no running request holds count as free.
    """

    step: int
    now_s: float
    running: NDArray[np.int64]
    requests: RequestView
    free_blocks: int
    joined: Sequence[int]
    left: Sequence[int]
    quiet: bool
    rules: EngineModel
    step_time: StepTime
    waiting_ids: Collection[int]
    ended: Sequence[int] = ()
    changed: Sequence[int] = ()
    prefixes: PrefixForest | None = None

    def is_waiting(self, i: int) -> bool:
        """Whether request `i` waits."""
        return i in self.waiting_ids

    @property
    def num_waiting(self) -> int:
        """Number of waiting requests."""
        return len(self.waiting_ids)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Ids of all waiting requests, in no particular order."""
        return np.fromiter(
            self.waiting_ids, dtype=np.int64, count=len(self.waiting_ids)
        )


class Decision(NamedTuple):
    """Decision for a step; its parts are applied in this order.

    Attributes
    ----------
    evict : sequence of int
        Running requests to evict: they lose their KV and wait again.
    order : sequence of int, optional
        The other running requests in the order in which they are served; unchanged if
        left out.
    start : sequence of int
        Waiting requests to start, in this order, up to the first that does not fit.
    wake_s : float, optional
        Time of the next decision if no request runs or starts.
    quiet_until, quiet_until_s : float
        Once all of `start` have started, the decision would be empty in all steps below
        `quiet_until` that begin before `quiet_until_s`, as long as the only events are
        that each running request makes a token. The engine may skip `decide` in these
        steps; by default it calls it before every step. The promise must be certain: a
        run must be the same whether the engine skips calls or not.
    """

    evict: Sequence[int] = ()
    order: Sequence[int] | None = None
    start: Sequence[int] = ()
    wake_s: float | None = None
    quiet_until: float = 0
    quiet_until_s: float = math.inf

    def stands(self, step: int, now_s: float) -> bool:
        """Whether `decide` may be skipped before a step because of this decision."""
        return step < self.quiet_until and now_s < self.quiet_until_s


NOTHING = Decision()
"""Decision without changes, for the next step."""

UNTIL_EVENT = Decision(quiet_until=math.inf)
"""Decision without changes, until the next event."""


class Policy(Protocol):
    """Decides before each step which requests start and which are evicted.

    One object is used for one run, in the simulator or in an engine. `decide` is called
    before every step, except in steps that `Decision.quiet_until` of its last decision
    allows to skip. It may keep derived data such as a sorted queue if it applies
    `joined`, `left` and `changed` to it; it must not modify a snapshot.
    """

    def decide(self, state: State) -> Decision:
        """Return the decision for the step that follows `state`."""
        ...
