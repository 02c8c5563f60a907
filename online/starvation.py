"""Bounded starvation: nobody waits for ever, whatever the policy prefers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from online.policy import Policy
    from online.state import Decision, State


class BoundedWait:
    """Puts requests that have waited too long before all others.

    While one of them does not fit, nothing else starts, so that what is freed is kept
    for it. Waiting begins at the arrival, and anew with each eviction.

    Parameters
    ----------
    policy : Policy
    max_wait_s : float
        Seconds of waiting, at least 0.
    """

    def __init__(self, policy: Policy, max_wait_s: float) -> None:
        if not (math.isfinite(max_wait_s) and max_wait_s >= 0):
            raise ValueError(
                f"max_wait_s = {max_wait_s} but must be a number of seconds, 0 or more."
            )
        self.policy = policy
        self.max_wait_s = max_wait_s
        self._since: dict[int, float] = {}  # in the order in which waiting began

    def decide(self, state: State) -> Decision:
        """Answer as the policy does, but the overdue first."""
        for i in state.left:
            self._since.pop(i, None)
        for i in state.joined:
            if state.is_waiting(i):
                self._since.setdefault(i, state.now_s)
        decision = self.policy.decide(state)
        overdue = []
        for i, since in self._since.items():
            if state.now_s - since <= self.max_wait_s:
                break
            overdue.append(i)
        return replace(decision, start=overdue) if overdue else decision
