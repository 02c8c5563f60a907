"""The last decision of a policy, for which an engine need not call it again.

Nearly all steps of an engine under load are quiet: each running request makes one
token, and no request arrives, starts or ends. A policy says until which step nothing
but such steps would change its decision; see `Decision.quiet_until`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from online.state import NOTHING, Decision, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy as np
    from numpy.typing import NDArray

    from online.prefix_forest import PrefixForest
    from online.requests import RequestView
    from online.state import Policy
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime


class LastDecision:
    """Keeps a policy's decision and the events since then.

    An engine appends events to the lists, calls `stands` before a step, `ask` if it
    does not stand, and `after_step` after every step.

    Parameters
    ----------
    rules : EngineModel
    step_time : StepTime

    Attributes
    ----------
    joined, left, ended, changed : list of int
        Events since the last decision; see `State`.
    all_decode : bool
        Whether every running request made a token in the last step, so that all of them
        decode.
    step_time : StepTime
        A new one must be followed by `disturb`.
    """

    def __init__(self, rules: EngineModel, step_time: StepTime) -> None:
        self.joined: list[int] = []
        self.left: list[int] = []
        self.ended: list[int] = []
        self.changed: list[int] = []
        self.all_decode = False
        self._rules = rules
        self.step_time = step_time
        self._decision = NOTHING
        self._free = 0
        # Whether the only events were that each running request made a token: in the
        # last step; and since the decision, except for the starts that it decided.
        self._quiet = self._calm = False

    def stands(
        self, step: int, clock: Callable[[], float], num_running: int, free_blocks: int
    ) -> bool:
        """Whether the next step needs no new decision.

        Parameters
        ----------
        step : int
            Steps done so far.
        clock : callable
            Returns the time in seconds; called only if the decision depends on it.
        num_running, free_blocks : int
            Without a running request the time of the next step is not known.
        """
        decision = self._decision
        if (
            not self._calm
            or step >= decision.quiet_until
            or self.joined
            or len(self.left) != len(decision.start)
            or self.ended
            or self.changed
            or not num_running
            or free_blocks > self._free  # an engine may free blocks late
        ):
            return False
        self._free = free_blocks
        until_s = decision.quiet_until_s
        return until_s == math.inf or clock() < until_s

    def ask(
        self,
        policy: Policy,
        step: int,
        now_s: float,
        running: NDArray[np.int64],
        requests: RequestView,
        free_blocks: int,
        waiting_ids: Collection[int],
        prefixes: PrefixForest | None,
    ) -> Decision:
        """Call the policy; see `State`. The events then count from this decision on."""
        joined, left, ended, changed = self.joined, self.left, self.ended, self.changed
        happened = joined or left or ended or changed
        decision = policy.decide(
            State(
                step,
                now_s,
                running,
                requests,
                free_blocks,
                joined,
                left,
                self._quiet and not happened and free_blocks <= self._free,
                self._rules,
                self.step_time,
                waiting_ids,
                ended,
                changed,
                prefixes,
            )
        )
        if happened:
            self.joined, self.left, self.ended, self.changed = [], [], [], []
        self._decision = decision
        self._free = free_blocks
        self._calm = self.all_decode or not len(running)
        return decision

    def after_step(
        self, *, all_decoded: bool, all_made: bool, as_decided: bool
    ) -> None:
        """Enter what happened in a step.

        Parameters
        ----------
        all_decoded : bool
            Each running request decoded, and none started.
        all_made : bool
            Each running request, also those started, made a token.
        as_decided : bool
            All requests started that the decision named, and none was evicted or
            preempted.
        """
        self._quiet = all_decoded
        self.all_decode = all_made
        self._calm = self._calm and all_made and as_decided

    def disturb(self) -> None:
        """Enter an event that no decision foresees."""
        self._quiet = self._calm = self.all_decode = False
