"""List policies: a fixed rank for the queue, and a rule for who may start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from online.policies import ranks
from online.policies.lengths import Lengths, Told
from online.policies.look_ahead import LookAhead
from online.policies.queue import Rank, RankedQueue
from online.policy import register_policy
from online.state import NOTHING, Decision

if TYPE_CHECKING:
    from online.state import State

Admission = Literal["engine", "look-ahead"]


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
        Start whatever the engine has room for now, or only what will never overflow by
        the predicted lengths.
    backfill : int
        How many requests that do not fit look-ahead may pass over.
    lengths : Lengths, optional
        Answer lengths that look-ahead reckons with; as they were told if left out.
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
        self.queue = queue
        self.backfill = backfill
        self.lengths = lengths or Told()
        self.look = LookAhead(backfill) if admission == "look-ahead" else None
        self._ran: frozenset[int] = frozenset()

    def decide(self, state: State) -> Decision:
        """Start the head of the queue."""
        self.lengths.update(state)
        self.queue.update(state)
        if self.look is None:
            start = fitting_head(state, self.queue)
        else:
            start = self._look(self.look, state)
        return Decision(start=start) if start else NOTHING

    def _look(self, look: LookAhead, state: State) -> list[int]:
        """Ask the forecast, unless an earlier answer still holds."""
        look.forget(state.left)
        if self._surprised(state):
            look.start_over()
        head = self.queue.head(self.backfill + 1)
        if all(look.must_wait(state, i) for i in head):
            return []
        room = self.backfill + 1
        while True:
            # Most often one or two can start: look at more only when all do.
            head = self.queue.head(room + 4)
            start = look.admit(state, head, self.lengths.by_id)
            if len(head) < room + 4 or len(start) + self.backfill < len(head):
                break
            room *= 4
        return start

    def _surprised(self, state: State) -> bool:
        """Whether somebody left before the forecast said so."""
        if state.quiet:
            return False
        running = frozenset(state.running.tolist())
        # Who started may have left in the same step.
        gone = self._ran.union(state.left) - running
        self._ran = running
        made, lengths = state.requests.made, self.lengths.by_id
        return any(made[i] < lengths[i] for i in gone)


def fitting_head(state: State, queue: Queue) -> list[int]:
    """Return the head of a queue: requests that the engine may have room for.

    The engine itself stops at the first that does not fit; nothing behind it is worth
    handing over.
    """
    rules, requests = state.rules, state.requests
    slots = rules.seqs_cap - len(state.running)
    head = queue.head(min(max(slots, 0), state.free_blocks))
    free = state.free_blocks
    for position, i in enumerate(head):
        free -= rules.blocks(int(requests.prefill[i] + requests.made[i]))
        if free < 0:
            return head[:position]
    return head


def _listed(rank: Rank, admission: Admission, backfill: int) -> ListPolicy:
    return ListPolicy(RankedQueue(rank), admission, backfill)


@register_policy("fcfs", about="first come, first served", knows="nothing")
def fcfs(admission: Admission = "engine", backfill: int = 0) -> ListPolicy:
    """First come, first served: vLLM's default."""
    return _listed(ranks.arrival, admission, backfill)


@register_policy("mc-sf", about="shortest answer first", knows="a length")
def mc_sf(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Shortest answer first, admitted by look-ahead (arXiv 2502.07115)."""
    return _listed(ranks.decode, admission, backfill)


@register_policy("total-size", about="smallest s + o first", knows="a length")
def total_size(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Smallest prompt and answer together first."""
    return _listed(ranks.total_size, admission, backfill)


@register_policy("svf", about="smallest volume first", knows="a length")
def svf(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Smallest memory-time volume first (arXiv 2606.22327)."""
    return _listed(ranks.volume, admission, backfill)
