"""A floor below every policy: how much later requests may be served before one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.by_id import grown
from online.starvation import OverdueFirst, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import Decision, Policy, State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

EVERY = 16
"""Steps between two checks for requests that were passed over."""


class BoundedPassing(OverdueFirst):
    """Serves a request first that later ones have passed over too often.

    While a request waits, `A` is the service of requests that arrived before it, which
    first come, first served would give first, too, and `B` that of later ones. It is
    overdue once `B > factor * A`. Service is what the engine has done, in tokens of KV
    times steps, so that no hint has any influence. Until a request is overdue the
    engine thus does at most `1 + factor` times the work that is ahead of it in order of
    arrival; then nothing else starts before it, and it starts at the latest when what
    runs has completed, and the overdue requests before it.

    Parameters
    ----------
    policy : Policy
    factor : float
        At least 0. It is looked at every `EVERY` steps.
    """

    def __init__(self, policy: Policy, factor: float) -> None:
        check_number("max_passed", factor, "times")
        super().__init__(policy, math.inf)
        self.factor = factor
        self._next = 0
        self._total = 0.0
        self._known: Floats = np.zeros(0)  # service of each request so far, by id
        self._passed: Floats = self._known  # `B` of each waiting request
        self._before: Floats = self._known  # total service when it began to wait
        self._gone: list[tuple[float, float]] = []  # arrival and service of ended ones

    def decide(self, state: State) -> Decision:
        """Return the policy's decision, with overdue requests first."""
        decision = super().decide(state)
        if decision.quiet_until > self._next and self._due_s:
            decision = decision._replace(quiet_until=self._next)
        return decision

    def _update(self, state: State) -> None:
        super()._update(state)
        self._known = grown(self._known, state)
        self._passed = grown(self._passed, state)
        self._before = grown(self._before, state)
        if state.ended:
            gone = np.array(state.ended, dtype=np.int64)
            arrival_s = state.requests.arrival_s[gone].tolist()
            self._gone += zip(arrival_s, self._new_service(state, gone), strict=True)
        preemptions = state.requests.each.preemptions
        for i in state.joined:
            if preemptions[i] == 0:
                self._known[i] = 0.0
            self._passed[i], self._before[i] = 0.0, self._total
        if state.step >= self._next:
            self._look(state)
            self._next = (state.step // EVERY + 1) * EVERY

    def _new_service(self, state: State, ids: Ints) -> list[float]:
        """Service of requests since it was last asked for."""
        output_tokens = state.requests.output_tokens[ids].astype(np.float64)
        service = output_tokens * (state.requests.prefill[ids] + output_tokens / 2)
        new = service - self._known[ids]
        self._known[ids] = service
        counted: list[float] = np.maximum(new, 0.0).tolist()
        return counted

    def _look(self, state: State) -> None:
        """Find the requests that have been passed over too often."""
        running, requests = state.running, state.requests
        service = self._new_service(state, running)
        served = [*self._gone, *zip(requests.arrival_s[running], service, strict=True)]
        self._gone = []
        waiting = [i for i, due_s in self._due_s.items() if due_s == math.inf]
        if not served:
            return
        arrival_s, new = np.array(sorted(served)).T
        self._total += float(new.sum())
        if not waiting:
            return
        ids = np.array(waiting, dtype=np.int64)
        later = np.append(np.cumsum(new[::-1])[::-1], 0.0)
        at = np.searchsorted(arrival_s, requests.arrival_s[ids], side="right")
        self._passed[ids] += later[at]
        passed = self._passed[ids]
        ahead = self._total - self._before[ids] - passed
        overdue = ids[passed > self.factor * np.maximum(ahead, 0.0)]
        fresh = {int(i): float(requests.arrival_s[i]) for i in overdue}
        for i in fresh:
            del self._due_s[i]
        self._insert(fresh)
