"""Preemptive policies: requests run in order of a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from online.policies.parts.preempting_kernels import choose
from online.policies.parts.ranked_queue import RankedQueue
from online.policies.parts.shared_prefixes import shared
from online.rules import rules_array
from online.state import NOTHING, Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


FIRST = 4
"""Waiting requests considered first, since usually at most one or two can start."""


class Scorer(Protocol):
    """Scores requests, lower first; waiting ones keep their scores until `update`."""

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether waiting requests have new scores."""
        ...

    def score(self, requests: RequestView, ids: Ints) -> Floats:
        """Score of each request."""
        ...

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Whether each running request must not be evicted."""
        ...

    def same_until(self, state: State) -> float:
        """Step before which the order does not change without an event."""
        ...


class Preempting:
    """Runs the requests of least score among waiting and running ones.

    The best waiting request starts if it fits. Otherwise the worst running requests are
    evicted for it, if each is worse by more than `hysteresis` and not protected, and
    only if it then fits: so an eviction always lets a better request start at once.
    Running requests are kept in the order (protected, score), so that the engine
    preempts the worst when it runs out of blocks.

    A decision costs `O(running log running)` for any number of waiting requests. One
    without changes is valid until an event, or until the scorer's `same_until`.

    Parameters
    ----------
    scorer : Scorer
    hysteresis : float
        In units of the score.
    headroom : int
        Steps of growth of all running requests for which blocks stay free at a start.
    """

    def __init__(
        self, scorer: Scorer, *, hysteresis: float = 0.0, headroom: int = 0
    ) -> None:
        for name, value in (("hysteresis", hysteresis), ("headroom", headroom)):
            if not value >= 0:
                raise ValueError(f"{name} = {value} but must be at least 0.")
        self.scorer = scorer
        self.hysteresis = hysteresis
        self.headroom = headroom
        self._queue = RankedQueue(scorer.score)
        self._standing = NOTHING
        self._rules: Ints | None = None

    def decide(self, state: State) -> Decision:
        """Start and evict by score."""
        if not (state.quiet and self._standing.stands(state.step, state.now_s)):
            decision = self._decide(state)
            self._standing = decision if decision.quiet_until else NOTHING
            return decision
        return self._standing

    def _decide(self, state: State) -> Decision:
        rescored = self.scorer.update(state)
        self._queue.update(state)
        if rescored:
            self._queue.rank_again(state)
        start, ids, stay = self._choose(state)
        until = self.scorer.same_until(state)
        if not len(self._queue):
            until = max(until, _no_preemption_until(state))
        return _decision(state.running, ids, stay, start, until)

    def _choose(self, state: State) -> tuple[list[int], Ints, int]:
        """Return starts, running ids in new order, and how many are not evicted."""
        requests, running = state.requests, state.running
        score = self.scorer.score(requests, running)
        guarded = self.scorer.protected(requests, running)
        if self._rules is None:  # constant in a run
            self._rules = rules_array(state.rules)
        per_running = self.headroom / state.rules.block_size
        ids = np.empty(len(running), dtype=np.int64)
        most = FIRST
        while True:  # consider more requests only if all of them start
            head = self._queue.first(most)
            waiting = np.array([key[2] for key in head], dtype=np.int64)
            scores = np.array([key[0] for key in head], dtype=np.float64)
            started, stay = choose(
                requests.ints, requests.arrival_s, running, guarded, score,
                waiting, scores, len(head), *shared(state, waiting.tolist()),
                state.free_blocks, self.hysteresis, per_running, self._rules, ids,
            )  # fmt: skip
            if started < most:
                return waiting[:started].tolist(), ids, stay
            most *= 4


def _no_preemption_until(state: State) -> int:
    """Step before which no preemption is possible, so that the order does not matter.

    In `k` steps a request makes at most `k` tokens and needs at most `ceil(k / B)` new
    blocks.
    """
    each = state.free_blocks // max(len(state.running), 1)
    return state.step + each * state.rules.block_size


def _decision(
    running: Ints, ids: Ints, stay: int, start: Sequence[int], until: float
) -> Decision:
    """Return the decision; the first `stay` of `ids` keep running, in this order.

    A decision without changes is valid until step `until`.
    """
    evict: Sequence[int] = ids[stay:].tolist() if stay < len(ids) else ()
    ids = ids[:stay]
    now = running[~np.isin(running, evict)] if evict else running
    order = None if np.array_equal(ids, now) else ids.tolist()
    if not start and order is None:
        return Decision(quiet_until=until) if until > 0 else NOTHING
    return Decision(evict=evict, order=order, start=start)
