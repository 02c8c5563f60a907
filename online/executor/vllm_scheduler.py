"""The scheduler class for vLLM: any policy of this package inside the engine.

The one file that touches vLLM's internals; see `door.TESTED` for the versions. Use it
as `--scheduler-cls online.executor.vllm_scheduler.PolicyScheduler`, or with
`AsyncPolicyScheduler` where async scheduling is on (a plain one would switch it off).
What it relies on: `Scheduler.schedule` takes from `self.waiting` what `peek_request`
shows while the queue is true; `_preempt_request` puts a request back with
`prepend_request`; without priorities the victim of a preemption is the last of
`self.running`; every request that ends goes through `_free_request`.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.request_queue import RequestQueue
from vllm.v1.core.sched.scheduler import Scheduler

from online import step_kernels as k
from online.executor.hints import Hints
from online.policy import Policy, make_policy
from online.requests import RequestTable
from online.rules import StepRules
from online.state import Decision, State
from online.step_engine import StepRecord
from online.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from vllm.v1.request import Request

logger = logging.getLogger("sortedf")


class OfferedQueue(RequestQueue):
    """All waiting requests, of which the engine sees only those that may start now."""

    def __init__(self) -> None:
        self.by_id: dict[int, Request] = {}
        self.joined: list[int] = []
        self.left: list[int] = []
        self.taken: list[int] = []
        self._offered: deque[int] = deque()
        self._place: dict[str, int] = {}

    def name(self, request: Request, i: int) -> None:
        """Say which id of the table a request has."""
        self._place[request.request_id] = i

    def forget(self, request_id: str, i: int) -> None:
        """Drop the name of a request that ended, unless another one has it by now."""
        if self._place.get(request_id) == i:
            del self._place[request_id]

    def offer(self, ids: Iterable[int]) -> None:
        """Let the engine see these requests, in this order."""
        self._offered = deque(ids)
        self.taken = []

    def add_request(self, request: Request) -> None:
        """Let a request wait."""
        i = self._place[request.request_id]
        self.by_id[i] = request
        self.joined.append(i)

    def peek_request(self) -> Request:
        """Return the next request that may start."""
        return self.by_id[self._offered[0]]

    def pop_request(self) -> Request:
        """Take the next request that may start."""
        i = self._offered.popleft()
        self.left.append(i)
        self.taken.append(i)
        return self.by_id.pop(i)

    def prepend_request(self, request: Request) -> None:
        """Let a preempted request wait again."""
        self.add_request(request)

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        """Let requests wait again that the engine took and could not start."""
        for request in requests:
            self.taken.remove(self._place[request.request_id])
            self.add_request(request)

    def remove_request(self, request: Request) -> None:
        """Drop a request that was cancelled."""
        i = self._place[request.request_id]
        if self.by_id.pop(i, None) is not None:
            self.left.append(i)

    def remove_requests(self, requests: Iterable[Request]) -> None:
        """Drop requests that were cancelled."""
        for request in requests:
            self.remove_request(request)

    def __bool__(self) -> bool:
        return bool(self._offered)

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Request]:
        return iter(self.by_id.values())


class _WithPolicy:
    """What both scheduler classes add to vLLM's."""

    waiting: Any  # an OfferedQueue; vLLM's own class declares another type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own: Any = self
        self.waiting = OfferedQueue()
        options = scheduler_options(own.vllm_config)
        self._hints = Hints(options.pop("max_predicted", None))
        self._begin = time.monotonic()
        self.rules = rules_of(own)
        self.num_steps = 0
        self._places: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._running: list[int] = []
        self._running_known = True
        self._quiet = False
        self._gone: list[int] = []
        self._evicting = False
        self._preempted: list[int] = []
        room = own.max_num_running_reqs + 1
        self._ones = np.ones(room, dtype=np.int64)
        self._resumed = tuple(np.zeros(room, dtype=np.int64) for _ in range(2))
        self._out = np.zeros(k.NUM_RESULTS, dtype=np.int64)
        self.recording = False
        self.records: deque[StepRecord] = deque()
        self._pending: deque[StepRecord] = deque()
        step_time = StepTime(**options.pop("step_time", {}))
        policy = make_policy(options.pop("policy", "svf"), **options)
        self.attach(RequestTable(), policy, step_time=step_time)

    def attach(
        self,
        table: RequestTable,
        policy: Policy,
        *,
        step_time: StepTime = UNIT_STEPS,
        clock: Callable[[], float] | None = None,
        id_of: Callable[[Request], int] | None = None,
        recording: bool = False,
    ) -> None:
        """Use this table, policy and clock from now on, while there are no requests.

        Parameters
        ----------
        clock : callable, optional
            Gives the time in seconds; by default seconds since the engine started.
        id_of : callable, optional
            Gives the id in the table of a request that is there already; by default
            each request is entered when it comes.
        recording : bool
            Keep a `StepRecord` of each step until `take_record`.
        """
        self.num_steps = 0
        self._quiet = False
        self._gone = []
        self.waiting.joined, self.waiting.left = [], []
        self.recording = recording
        self.table = table
        self._chooser: Policy | None = policy
        self.step_time = step_time
        self._clock = clock or (lambda: time.monotonic() - self._begin)
        self._id_of = id_of

    # What vLLM calls.

    def add_request(self, request: Request) -> None:
        own: Any = super()
        if request.request_id not in self._places:
            i = self._enter(request)
            self._places[request.request_id] = i
            self._names[i] = request.request_id
            self.waiting.name(request, i)
        own.add_request(request)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        own: Any = super()
        joined, left = self.waiting.joined, self.waiting.left
        decision = self._decide(self._state(joined, left))
        self.waiting.joined, self.waiting.left = [], []
        self._forget_gone()
        evicted = self._evict(decision)
        self._put_in_order(decision)
        self._preempted = []
        self.waiting.offer(decision.start)
        output = own.schedule(*args, **kwargs)
        started = self.waiting.taken
        self.waiting.offer(())
        if output.num_scheduled_tokens or evicted:
            self.num_steps += 1
        self._advance(output, started)
        if self.recording:
            self._record(len(output.num_scheduled_tokens), started, evicted, decision)
        return output

    def update_from_output(self, *args: Any, **kwargs: Any) -> Any:
        own: Any = super()
        before = len(self._gone)
        outputs = own.update_from_output(*args, **kwargs)
        if self._pending:
            finished = self._gone[before:]
            self.records.append(replace(self._pending.popleft(), finished=finished))
        return outputs

    def _preempt_request(self, request: Request, *args: Any, **kwargs: Any) -> None:
        own: Any = super()
        i = self._places[request.request_id]
        own._preempt_request(request, *args, **kwargs)
        ints = self.table.ints
        ints[k.RECOMPUTED, i] += ints[k.COMPUTED, i]
        ints[k.COMPUTED, i] = 0
        ints[k.PREEMPTIONS, i] += 1
        self._quiet = self._running_known = False
        if not self._evicting:
            self._preempted.append(i)

    def _free_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        own: Any = super()
        i = self._places.pop(request.request_id, None)
        if i is not None:
            self._gone.append(i)
            self._quiet = False
            if i in self._running:
                self._running.remove(i)
        return own._free_request(request, *args, **kwargs)

    @property
    def policy_in_charge(self) -> Policy | None:
        """The policy that decides; None once it has failed."""
        return self._chooser

    def take_record(self) -> StepRecord:
        """Return the record of the last step that was not returned yet."""
        return self.records.popleft()

    # The policy's side.

    def _enter(self, request: Request) -> int:
        if self._id_of is not None:
            return self._id_of(request)
        params = request.sampling_params
        most = request.max_tokens
        extra = (params.extra_args if params is not None else None) or {}
        hint = self._hints.read(extra, most)
        prefill = request.num_prompt_tokens
        # Who would not fit alone by its hint must not wait for ever because of it.
        room = self.rules.num_blocks * self.rules.block_size + 1 - prefill
        predicted = max(1, min(hint.predicted, room))
        return self.table.add(prefill, most, predicted, self._clock(), hint.score)

    def _state(self, joined: list[int], left: list[int]) -> State:
        own: Any = self
        if not self._running_known:
            self._running = [self._places[r.request_id] for r in own.running]
            self._running_known = True
        running = np.array(self._running, dtype=np.int64)
        running.flags.writeable = False
        return State(
            self.num_steps,
            self._clock(),
            running,
            self.table.view,
            own.kv_cache_manager.block_pool.get_num_free_blocks(),
            joined,
            left,
            self._quiet and not joined and not left,
            self.rules,
            self.step_time,
            self.waiting.by_id,
        )

    def _record(
        self,
        num_running: int,
        started: list[int],
        evicted: list[int],
        decision: Decision,
    ) -> None:
        """Note what the step does; who finishes in it is known when it is over."""
        own: Any = self
        free = own.kv_cache_manager.block_pool.get_num_free_blocks()
        ids = np.array(self._running, dtype=np.int64)
        out = self._out.tolist()
        resumed = [array[: out[k.RESUMED]].tolist() for array in self._resumed]
        self._pending.append(
            StepRecord(
                step=self.num_steps,
                started=started,
                finished=(),
                preempted=self._preempted,
                evicted=evicted,
                resumed=list(zip(*resumed, strict=True)),
                num_running=num_running,
                num_waiting=len(self.waiting),
                prefill_tokens=out[k.PREFILL_TOKENS],
                decode_tokens=out[k.DECODE_TOKENS],
                made_tokens=out[k.MADE_TOKENS],
                kv_tokens=int(self.table.ints[k.COMPUTED, ids].sum()),
                used_blocks=self.rules.num_blocks - free,
                wake_s=decision.wake_s,
            )
        )

    def _forget_gone(self) -> None:
        """Give the places of requests that ended to new ones, now that it is told."""
        if self._id_of is None:
            for i in self._gone:
                self.waiting.forget(self._names.pop(i), i)
                self.table.remove(i)
        self._gone = []

    def _decide(self, state: State) -> Decision:
        """Ask the policy; if it fails or stalls, go on by arrival and say why."""
        if self._chooser is not None:
            try:
                decision = self._chooser.decide(state)
                if not self._stalls(state, decision):
                    return decision
                logger.warning("the policy %r starts nothing.", self._chooser)
            except Exception:
                logger.exception(
                    "the policy %r failed; going on first come, first served.",
                    self._chooser,
                )
                self._chooser = None
        waiting = state.waiting
        order = np.lexsort((waiting, state.requests.arrival_s[waiting]))
        return Decision(start=waiting[order].tolist())

    @staticmethod
    def _stalls(state: State, decision: Decision) -> bool:
        """Whether requests wait, nothing runs and the policy leaves it at that."""
        idle = state.num_waiting > 0 and not len(state.running)
        return idle and not decision.start and decision.wake_s is None

    def _evict(self, decision: Decision) -> list[int]:
        own: Any = self
        if not decision.evict:
            return []
        gone = set(decision.evict)
        stamp = time.monotonic()
        self._evicting = True
        stay: list[Request] = []
        evicted: list[Request] = []
        for request in own.running:
            (evicted if self._places[request.request_id] in gone else stay).append(
                request
            )
        own.running[:] = stay
        for request in evicted:
            own._preempt_request(request, stamp)
        self._evicting = False
        return [self._places[request.request_id] for request in evicted]

    def _put_in_order(self, decision: Decision) -> None:
        if decision.order is None:
            return
        own: Any = self
        place = {i: position for position, i in enumerate(decision.order)}
        own.running.sort(key=lambda r: place[self._places[r.request_id]])
        self._running = list(decision.order)
        self._running_known = True

    def _advance(self, output: Any, started: list[int]) -> None:
        """Count the tokens that this step gives to each request."""
        own: Any = self
        scheduled = output.num_scheduled_tokens
        if self._preempted or not self._running_known:
            self._running = [self._places[r.request_id] for r in own.running]
            self._running_known = True
        else:
            self._running = self._running + started
        served = self._running
        if len(scheduled) != len(served):  # a step's tokens ran out
            served = [self._places[request_id] for request_id in scheduled]
        for i in started:
            # Blocks of a prefix that was computed for another request count as done.
            request = own.requests[self._names[i]]
            done = request.num_computed_tokens - scheduled[request.request_id]
            self.table.ints[k.COMPUTED, i] = done
        count = len(served)
        ids = np.array(served, dtype=np.int64)
        if output.total_num_scheduled_tokens == count:
            tokens = self._ones
        else:
            tokens = np.fromiter(scheduled.values(), dtype=np.int64, count=count)
        out = self._out
        out[:] = 0
        resumed, after = self._resumed
        k.advance(
            self.table.ints, ids, tokens, count, self.num_steps, resumed, after, out
        )
        whole = count == len(self._running) and not started
        self._quiet = bool(whole and out[k.DECODE_TOKENS] == count)


class PolicyScheduler(_WithPolicy, Scheduler):
    """vLLM's scheduler with a policy of this package; async scheduling off."""


class AsyncPolicyScheduler(_WithPolicy, AsyncScheduler):
    """vLLM's async scheduler with a policy of this package."""


def scheduler_options(vllm_config: Any) -> dict[str, Any]:
    """Options of the policy: additional_config["sortedf"], else SORTEDF_SCHEDULER.

    Both hold `policy`, options of the policy (`backfill`, `max_wait_s`, ...),
    `step_time` and `max_predicted`; the environment variable as a JSON object.
    """
    extra = getattr(vllm_config, "additional_config", None) or {}
    options = extra.get("sortedf") if isinstance(extra, dict) else None
    if options is None:
        text = os.environ.get("SORTEDF_SCHEDULER", "{}")
        try:
            options = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"SORTEDF_SCHEDULER = {text!r} is no JSON object: {error}."
            ) from None
    if not isinstance(options, dict):
        raise ValueError(f"the scheduler's options must be an object, not {options!r}.")
    return dict(options)


def rules_of(scheduler: Any) -> StepRules:
    """Read the engine's rules off its configuration."""
    config = scheduler.scheduler_config
    size = scheduler.block_size
    blocks = scheduler.cache_config.num_gpu_blocks - 1  # one is the null block
    return StepRules(
        kv_budget=blocks * size,
        block_size=size,
        max_num_seqs=scheduler.max_num_running_reqs,
        max_batched_tokens=scheduler.max_num_scheduled_tokens,
        chunked_prefill=config.enable_chunked_prefill,
        reserve_prompt=scheduler.scheduler_reserve_full_isl,
        watermark=config.watermark,
    )
