"""Preemptive policies: who should run by a score, and who has to go for it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Protocol

import numpy as np

from online.policies.queue import RankedQueue
from online.policies.room import Room, Shares
from online.state import NOTHING, Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class Scorer(Protocol):
    """Scores requests, lower first; the score of one that waits does not change."""

    def update(self, state: State) -> bool:
        """Take in a snapshot; return whether those that wait have to be scored anew."""
        ...

    def score(self, requests: RequestView, ids: Ints) -> Floats:
        """Score of each request."""
        ...

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Which running requests must not be evicted."""
        ...

    def same_until(self, state: State) -> float:
        """Step before which it need not be asked, if nothing happens."""
        ...


class Preempting:
    """Runs the requests of least score, whether they wait or run.

    The best waiting request starts if there is room. If there is none, the worst of
    those that run are evicted for it, as long as each is worse than it by more than
    `hysteresis` and not protected, and only if it fits in the end: so an eviction
    always lets something better start at once. Running requests are kept in the order
    (protected, score), so that the engine, when it runs out of blocks, takes the worst.
    A decision costs `O(running log running)`, however many wait. One that changes
    nothing stands until something happens or the scorer says that scores have changed.

    Parameters
    ----------
    scorer : Scorer
    hysteresis : float
        In units of the score.
    headroom : int
        Steps of growth of all that runs that stay free when a request starts.
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
        requests, running = state.requests, state.running
        score = self.scorer.score(requests, running)
        free = ~self.scorer.protected(requests, running)
        best_first = np.lexsort((running, requests.arrival_s[running], score, free))
        ids = running[best_first]
        until = self.scorer.same_until(state)
        if not len(self._queue):
            until = max(until, _no_preemption_until(state))
            return _decision(running, ids, (), (), until)
        num_protected = len(ids) - int(free.sum())
        victims = _Victims(state, ids, score[best_first], num_protected)
        start = self._fill(state, victims)
        return _decision(running, ids, victims.taken, start, until)

    def _fill(self, state: State, victims: _Victims) -> list[int]:
        """Start waiting requests, best first, until one does not fit."""
        rules, requests = state.rules, state.requests
        room = Room.of(state, victims.shares, self.headroom)
        start: list[int] = []
        for score, _, i in self._queue.with_ranks():
            tokens = int(requests.prefill[i] + requests.made[i])
            # Evicting for tokens would not help: who decodes gives back a single one.
            if room.tokens < (1 if rules.chunked_prefill else tokens):
                break
            blocks = rules.blocks(tokens + rules.extra_slots)
            made = victims.make_room(room, blocks, score + self.hysteresis)
            if made is None:
                break
            room = made
            room.start(blocks, tokens)
            start.append(i)
        return start


class _Victims:
    """Running requests, best first, of which those at the end may be evicted."""

    def __init__(
        self, state: State, ids: Ints, score: Floats, num_protected: int
    ) -> None:
        self.shares = Shares.of(state, ids)
        self._ids = ids
        self._score = score
        self._least = num_protected
        self._left = len(ids)

    @property
    def taken(self) -> list[int]:
        """Who is evicted."""
        taken: list[int] = self._ids[self._left :].tolist()
        return taken

    def make_room(self, room: Room, blocks: int, score: float) -> Room | None:
        """Evict those worse than `score` until `blocks` fit; nobody if they never do.

        Returns the room there is then, or None.
        """
        left = self._left
        if not room.fits(blocks):
            room = copy(room)
            while not room.fits(blocks):
                left -= 1
                if left < self._least or not self._score[left] > score:
                    return None
                shares = self.shares
                room.evict(int(shares.blocks[left]), int(shares.tokens[left]))
        self._left = left
        return room


def _no_preemption_until(state: State) -> int:
    """Step before which nobody is preempted, so that the order makes no difference.

    In `k` steps a request that makes a token in each takes at most `k / B` blocks,
    rounded up.
    """
    each = state.free_blocks // max(len(state.running), 1)
    return state.step + each * state.rules.block_size


def _decision(
    running: Ints, ids: Ints, evict: Sequence[int], start: Sequence[int], until: float
) -> Decision:
    """Answer; `ids` is what ran in its new order, with who is evicted at the end.

    An answer that changes nothing stands until step `until`.
    """
    stay = ids[: len(ids) - len(evict)]
    now = running[~np.isin(running, evict)] if evict else running
    order = None if np.array_equal(stay, now) else stay.tolist()
    if not start and order is None:
        return Decision(quiet_until=until) if until > 0 else NOTHING
    return Decision(evict=evict, order=order, start=start)
