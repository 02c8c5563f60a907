"""List policies: a queue in some order, and an admission rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Protocol

from online.policies.parts.lengths import Lengths, PredictedLengths
from online.policies.parts.look_ahead import LookAhead
from online.policies.parts.moving_queue import MovingQueue
from online.policies.parts.ranked_queue import RankedQueue
from online.state import NOTHING, UNTIL_EVENT, Decision

if TYPE_CHECKING:
    from online.state import State

Admission = Literal["engine", "look-ahead"]

FIRST = 4
"""Requests considered first, since usually at most one or two can start."""


class Queue(Protocol):
    """Waiting requests in some order."""

    def update(self, state: State) -> None:
        """Apply what joined and left."""
        ...

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        ...


class ListPolicy:
    """Starts waiting requests in the order of a queue.

    Parameters
    ----------
    queue : Queue
    admission : {"engine", "look-ahead"}
        Start requests that fit now, by the engine's rule, or only those that never
        overflow the cache by the predicted lengths.
    backfill : int
        Requests that do not fit and that look-ahead may pass over, at most.
    lengths : Lengths, optional
        Answer lengths for look-ahead; the predicted ones if left out.
    """

    def __init__(
        self,
        queue: Queue,
        admission: Admission = "look-ahead",
        backfill: int = 0,
        lengths: Lengths | None = None,
    ) -> None:
        if admission not in ("engine", "look-ahead"):
            raise ValueError(
                f"admission = {admission!r} but must be 'engine' or 'look-ahead'."
            )
        if backfill and admission == "engine":
            raise ValueError(
                f"backfill = {backfill} but must be 0 with admission = 'engine'; "
                "look-ahead can pass over requests that do not fit."
            )
        self.queue = queue
        self.backfill = backfill
        self.lengths = lengths or PredictedLengths()
        self.look = LookAhead(backfill) if admission == "look-ahead" else None
        self._moves = isinstance(queue, MovingQueue)
        self._started: list[int] = []

    def decide(self, state: State) -> Decision:
        """Start the head of the queue."""
        self.lengths.update(state)
        self.queue.update(state)
        if self.look is None:
            start, until = fitting_head(state, self.queue), math.inf
            if start:  # the engine decides which of them fit
                return Decision(start=start)
        else:
            start, until = self._look(self.look, state)
        if self._moves and (start or not is_full(state)):
            return Decision(start=start) if start else NOTHING
        until = min(until, self.lengths.same_until(state, start))
        if not start and until == math.inf:
            return UNTIL_EVENT
        return Decision(start=start, quiet_until=until)

    def _look(self, look: LookAhead, state: State) -> tuple[list[int], float]:
        """Compute the forecast, unless an earlier one is still valid.

        Returns the requests to start, and the step before which no other can start.
        """
        look.forget(state.left)
        look.forget(state.changed)
        if self._surprised(state):
            look.start_over()
        self._started = []
        first = self.backfill + 1
        until = look.wait_until(self.queue.head(first))
        if until > state.step:
            return [], until
        room = first
        while True:  # consider more requests only if all can start
            head = self.queue.head(room + FIRST)
            start = look.admit(state, head, self.lengths.by_id)
            if len(head) < room + FIRST or len(start) + self.backfill < len(head):
                break
            room *= 4
        if start:
            self._started = start
            starting = set(start)
            head = self.queue.head(first + len(start))
            head = [i for i in head if i not in starting]
        return start, look.wait_until(head[:first])

    def _surprised(self, state: State) -> bool:
        """Whether an event differs from the forecast, which then is invalid.

        A preemption, a completion at another length than predicted, a changed
        prediction of a running request, or an unforeseen start of a request, which may
        share its prefix with waiting ones.
        """
        if state.quiet:
            return False
        if state.prefixes is not None and not set(state.left) <= set(self._started):
            return True
        each, lengths = state.requests.each, self.lengths.by_id
        preemptions, output_tokens = each.preemptions, each.output_tokens
        return (
            any([preemptions[i] for i in state.joined])
            or any([output_tokens[i] != lengths.item(i) for i in state.ended])
            or any([not state.is_waiting(i) for i in state.changed])
        )


def is_full(state: State) -> bool:
    """Whether no request can start before a running one completes."""
    free_seqs = state.rules.seqs_cap - len(state.running)
    return free_seqs <= 0 or state.free_blocks <= 0 or state.num_waiting == 0


def fitting_head(state: State, queue: Queue) -> list[int]:
    """Return the head of a queue: requests that may fit now.

    The engine stops at the first that does not fit, so later ones are left out.
    """
    rules, each, free = state.rules, state.requests.each, state.free_blocks
    most = min(rules.seqs_cap - len(state.running), free)
    if most <= 0:
        return []
    prefill, output_tokens = each.prefill, each.output_tokens
    whole = rules.reserve_prompt  # else the first chunk must fit
    head = queue.head(min(most, FIRST))
    while True:
        tokens = [prefill[i] + output_tokens[i] for i in head]
        needs = [rules.blocks(count) if whole else 1 for count in tokens]
        if state.prefixes is not None and whole:
            needs = state.prefixes.needs(head, tokens, needs)
        for position, need in enumerate(needs):
            free -= need
            if free < 0:
                return head[:position]
        if len(head) in (most, state.num_waiting):
            return head
        # All of them fit: consider more.
        free, head = state.free_blocks, queue.head(min(most, 4 * len(head)))


def by_rank(rank: Any, admission: Admission, backfill: int) -> ListPolicy:
    """Return a list policy by one of `ranks`."""
    return ListPolicy(RankedQueue(rank, rank), admission, backfill)
