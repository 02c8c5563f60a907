"""Bounded waiting: no request starves, whatever the policy prefers.

`OverdueFirst` serves requests that are overdue before all others: those that have
waited too long (`BoundedWait`), or were passed over too often (`online.passing`).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from online.state import Decision, Policy, State


class OverdueFirst:
    """Serves overdue requests before all others, until they complete.

    Overdue requests start in the order in which they began to wait. While the first of
    them does not fit, no other request starts and none is evicted, so that freed blocks
    are kept for it. Once started it is protected until completion: evictions in a
    decision that would evict it are cancelled, it is served first, and if the engine
    still preempts it (for one that was overdue before it), it keeps its due time. So it
    starts at the latest when all running requests and the overdue ones before it have
    completed.

    Parameters
    ----------
    policy : Policy
    max_wait_s : float
        Seconds from its arrival or eviction after which a request is overdue.
    """

    def __init__(self, policy: Policy, max_wait_s: float) -> None:
        self.policy = policy
        self.max_wait_s = max_wait_s
        self._due_s: dict[int, float] = {}  # waiting requests by due time
        self._protected: dict[int, float] = {}  # running requests that were overdue
        self._last_s = -math.inf

    def decide(self, state: State) -> Decision:
        """Return the policy's decision, with overdue requests first."""
        self._update(state)
        self._last_s = state.now_s
        decision = self.policy.decide(state)
        soonest_s = next(iter(self._due_s.values()), math.inf)
        if soonest_s <= state.now_s:
            # More of them may be overdue before the next step.
            decision = _without_evictions(decision)._replace(
                start=self._overdue(state), quiet_until=0
            )
        elif not self._protected.keys().isdisjoint(decision.evict):
            # If one of its evictions is cancelled, the others may free too little.
            decision = _without_evictions(decision)
        elif soonest_s < decision.quiet_until_s and decision.quiet_until:
            decision = decision._replace(quiet_until_s=soonest_s)
        if decision.wake_s is not None:
            decision = decision._replace(wake_s=min(decision.wake_s, soonest_s))
        return self._protected_first(state, decision)

    def _update(self, state: State) -> None:
        """Update the due times of waiting requests and the protected ones."""
        if not (state.joined or state.left or self._protected):
            return
        for i in state.left:
            due_s = self._due_s.pop(i, math.inf)
            if due_s <= self._last_s:
                self._protected[i] = due_s
        each = state.requests.each
        fresh: dict[int, float] = {}
        for i in state.joined:
            due_s = self._protected.pop(i, math.inf)
            if not state.is_waiting(i) or i in self._due_s:
                continue
            if each.preemptions[i] == 0:
                due_s = each.arrival_s[i] + self.max_wait_s
            elif due_s == math.inf:
                due_s = state.now_s + self.max_wait_s
            fresh[i] = due_s
        self._insert(fresh)
        if not state.quiet:
            running = set(state.running.tolist())
            self._protected = {
                i: due_s for i, due_s in self._protected.items() if i in running
            }

    def _insert(self, fresh: dict[int, float]) -> None:
        """Add due times, keeping the order; nearly always they are the latest."""
        if not fresh:
            return
        last_s = next(reversed(self._due_s.values()), -math.inf)
        by_due = sorted(fresh.items(), key=lambda item: item[1])
        if by_due[0][1] < last_s:  # otherwise sorting all would be wasted time
            by_due = sorted([*self._due_s.items(), *by_due], key=lambda item: item[1])
            self._due_s = {}
        self._due_s.update(by_due)

    def _overdue(self, state: State) -> list[int]:
        """Overdue requests, at most as many as the engine could start."""
        free_seqs = state.rules.seqs_cap - len(state.running)
        overdue: list[int] = []
        for i, due_s in self._due_s.items():
            if due_s > state.now_s or len(overdue) >= min(free_seqs, state.free_blocks):
                break
            overdue.append(i)
        return overdue

    def _protected_first(self, state: State, decision: Decision) -> Decision:
        """Order protected requests first, by due time."""
        if not self._protected:
            return decision
        running = [i for i in state.running.tolist() if i not in decision.evict]
        wanted = running if decision.order is None else decision.order
        first = sorted(self._protected, key=self._protected.__getitem__)
        order = first + [i for i in wanted if i not in self._protected]
        return decision._replace(order=None if order == running else order)


class BoundedWait(OverdueFirst):
    """Serves requests first that have waited too long.

    Parameters
    ----------
    policy : Policy
    max_wait_s : float
        Limit on waiting in seconds, at least 0, from the arrival. A request's waiting
        time restarts when it is evicted.
    """

    def __init__(self, policy: Policy, max_wait_s: float) -> None:
        check_number("max_wait_s", max_wait_s, "seconds")
        super().__init__(policy, max_wait_s)


def _without_evictions(decision: Decision) -> Decision:
    """Remove the evictions from a decision."""
    if not decision.evict:
        return decision
    order = decision.order
    if order is not None:
        order = [*order, *decision.evict]
    return decision._replace(evict=(), order=order)


def check_number(name: str, value: Any, unit: str) -> None:
    """Raise ValueError unless it is a finite number, 0 or more."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= 0):
        raise ValueError(
            f"{name} = {value!r} but must be a number of {unit}, 0 or more."
        )
