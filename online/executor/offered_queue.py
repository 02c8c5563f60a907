"""The waiting queue of vLLM's scheduler, from which a policy offers requests."""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

from vllm.v1.core.sched.request_queue import RequestQueue
from vllm.v1.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vllm.v1.request import Request

    from online.last_decision import LastDecision

NOT_READY = (
    RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR,
    RequestStatus.WAITING_FOR_REMOTE_KVS,
    RequestStatus.WAITING_FOR_STREAMING_REQ,
)
"""States of waiting requests that the engine cannot start yet, even if they fit."""


class OfferedQueue(RequestQueue):
    """All waiting requests, of which the engine sees only those that may start now.

    Attributes
    ----------
    by_id : dict of int to Request
        Requests visible to the policy.
    last : LastDecision
        Gets the ids added to `by_id` and removed from it; set when a policy is used.
    blocked : dict of int to Request
        Requests that the engine cannot start yet, so that no memory is kept for them.
    skipped : dict of int to Request
        Requests that were offered in the last step and not started. They are left out
        for one step, so that others are offered.
    """

    def __init__(self) -> None:
        self.last: LastDecision
        self.by_id: dict[int, Request] = {}
        self.blocked: dict[int, Request] = {}
        self.skipped: dict[int, Request] = {}
        self._taken: list[Request] = []
        self._offered: deque[int] = deque()

    def offer(self, ids: Iterable[int]) -> None:
        """Offer these requests to the engine, in this order."""
        self._offered.extend(ids)

    def withdraw(self) -> list[Request]:
        """End the offer; return the requests that started.

        Other requests that the engine took have begun to load KV and do not run yet.
        """
        taken, self._taken = self._taken, []
        self._offered.clear()
        return [r for r in taken if r.status == RequestStatus.RUNNING]

    def promote(self, is_ready: Callable[[Request], bool]) -> list[Request]:
        """Move blocked requests that are ready back to `by_id`; return them."""
        ready = [request for request in self.blocked.values() if is_ready(request)]
        for request in ready:
            del self.blocked[request.sortedf_id]
            self.add_request(request)
        self.blocked |= self.skipped
        self.skipped = {}
        return ready

    def add_request(self, request: Any) -> None:
        """Add a request to the waiting ones."""
        i = request.sortedf_id
        if request.status in NOT_READY:
            self.blocked[i] = request
            return
        self.by_id[i] = request
        self.last.joined.append(i)

    def peek_request(self) -> Request:
        """Return the next request that may start."""
        return self.by_id[self._offered[0]]

    def pop_request(self) -> Request:
        """Take the next request that may start."""
        i = self._offered.popleft()
        request = self.by_id.pop(i)
        self.last.left.append(i)
        self._taken.append(request)
        return request

    def prepend_request(self, request: Request) -> None:
        """Return a preempted request to the waiting ones."""
        self.add_request(request)

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        """Return requests that the engine took and did not start."""
        for request in requests:
            self.skipped[request.sortedf_id] = request

    def remove_request(self, request: Any) -> None:
        """Drop a request that was cancelled."""
        i = request.sortedf_id
        self.blocked.pop(i, None)
        self.skipped.pop(i, None)
        if self.by_id.pop(i, None) is not None:
            self.last.left.append(i)

    def remove_requests(self, requests: Iterable[Request]) -> None:
        """Drop requests that were cancelled."""
        for request in requests:
            self.remove_request(request)

    def __bool__(self) -> bool:
        return bool(self._offered)

    def __len__(self) -> int:
        return len(self.by_id) + len(self.blocked) + len(self.skipped)

    def __iter__(self) -> Iterator[Request]:
        return chain(self.by_id.values(), self.blocked.values(), self.skipped.values())
