"""A policy inside an engine that is replaced if it fails."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from online.policy import make_policy
from online.state import Decision

if TYPE_CHECKING:
    from online.state import Policy, State

logger = logging.getLogger("sortedf")


class FallbackPolicy:
    """A policy whose failures do not affect requests.

    If it raises, or its decision is invalid, the error is logged and first come, first
    served replaces it.

    Attributes
    ----------
    policy : Policy, optional
        The policy that decides; None once it has failed.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy: Policy | None = policy
        self._spare = make_policy("fcfs")

    def decide(self, state: State) -> Decision:
        """Return the policy's decision; if it fails or stalls, decide by arrival."""
        if self.policy is None:
            decision = self._spare.decide(state)
        else:
            decision = self._ask(self.policy, state)
        if decision.start or len(state.running) or not _stalls(state, decision):
            return decision
        logger.warning("the policy %r starts no request.", self.policy or self._spare)
        waiting = state.waiting
        order = np.lexsort((waiting, state.requests.arrival_s[waiting]))
        return Decision(start=waiting[order].tolist())

    def _ask(self, policy: Policy, state: State) -> Decision:
        try:
            decision = policy.decide(state)
            check_decision(state, decision)
            return decision
        except Exception:
            logger.exception(
                "the policy %r failed; going on first come, first served.", policy
            )
        self.policy = None
        waiting = list(state.waiting_ids)
        return self._spare.decide(
            state._replace(joined=waiting, left=(), changed=(), quiet=False)
        )


def check_decision(state: State, decision: Decision) -> None:
    """Raise ValueError unless a decision starts waiting and evicts running requests."""
    start, evict, order = decision.start, decision.evict, decision.order
    if start and not (
        len(set(start)) == len(start) and all(i in state.waiting_ids for i in start)
    ):
        raise ValueError(f"it starts requests that do not wait, or twice: {start}.")
    if not evict and order is None:
        return
    running, evicted = set(state.running.tolist()), set(evict)
    if len(evicted) < len(evict) or not evicted <= running:
        raise ValueError(f"it evicts requests that do not run, or twice: {evict}.")
    if order is None:
        return
    named = evicted.union(order)
    if len(order) + len(evict) != len(running) or not running <= named:
        raise ValueError("its order does not name each remaining request once.")


def _stalls(state: State, decision: Decision) -> bool:
    """Whether requests wait and a decision neither starts one nor sets a wake time."""
    return state.num_waiting > 0 and decision.wake_s is None and not decision.start
