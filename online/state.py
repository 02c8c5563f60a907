"""What a policy sees, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.rules import StepRules
    from online.step_time import StepTime


@dataclass(frozen=True, slots=True, eq=False)
class State:
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
        made one token.
    rules : StepRules
    step_time : StepTime
        Seconds that a step takes.
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
    _waiting: Collection[int]

    def is_waiting(self, i: int) -> bool:
        """Whether request `i` waits."""
        return i in self._waiting

    @property
    def num_waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Ids of all waiting requests, in no particular order."""
        return np.fromiter(self._waiting, dtype=np.int64, count=len(self._waiting))


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
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
    """

    evict: Sequence[int] = ()
    order: Sequence[int] | None = None
    start: Sequence[int] = ()
    wake_s: float | None = None


NOTHING = Decision()
"""The decision to leave everything as it is."""
