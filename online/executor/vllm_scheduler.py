"""The scheduler class for vLLM: any policy of this package inside the engine.

The one file that touches vLLM's internals; see `vllm_version.TESTED` for the versions.
Use it as `--scheduler-cls online.executor.vllm_scheduler.PolicyScheduler`, or with
`AsyncPolicyScheduler` if async scheduling is on (the other would switch it off).
It relies on the following: `Scheduler.schedule` starts the request that `peek_request`
returns while `self.waiting` is true; `_preempt_request` puts a request back with
`prepend_request`; without priorities the victim of a preemption is the last of
`self.running`; `_free_request` is called for every request that ends; attributes can be
added to a request object, such as its id in the request table.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.interface import PauseState
from vllm.v1.core.sched.request_queue import RequestQueue, SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from online import step_kernels as k
from online.executor.fallback_policy import FallbackPolicy
from online.executor.hints import Hints
from online.executor.prefix_cache import chain_of, forest_of
from online.executor.preload import preload
from online.executor.running import Running
from online.executor.scheduler_options import SchedulerOptions, scheduler_options
from online.executor.vllm_version import refuse_missing_names
from online.requests import UNKNOWN, RequestTable
from online.state import NOTHING, Decision, State
from online.step_engine import StepRecord
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from vllm.v1.request import Request

    from online.state import Policy

logger = logging.getLogger("sortedf")

WHOLE = (RequestStatus.FINISHED_STOPPED, RequestStatus.FINISHED_LENGTH_CAPPED)
"""Final states of completed answers, which were not cancelled."""


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
    joined, left : list of int
        Ids added to `by_id` and removed from it since the last decision.
    blocked : dict of int to Request
        Requests that the engine cannot start yet, so that no memory is kept for them.
    skipped : dict of int to Request
        Requests that were offered in the last step and not started. They are left out
        for one step, so that others are offered.
    """

    def __init__(self) -> None:
        self.by_id: dict[int, Request] = {}
        self.joined: list[int] = []
        self.left: list[int] = []
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
        self.joined.append(i)

    def peek_request(self) -> Request:
        """Return the next request that may start."""
        return self.by_id[self._offered[0]]

    def pop_request(self) -> Request:
        """Take the next request that may start."""
        i = self._offered.popleft()
        request = self.by_id.pop(i)
        self.left.append(i)
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
            self.left.append(i)

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


class _WithPolicy:
    """Code that both scheduler classes add to vLLM's.

    Nearly all steps of an engine under load are quiet: each running request makes one
    token, and no request arrives, starts or ends. Such a step costs a few comparisons:
    the policy's last decision stands, and the request table is updated later. With
    speculative decoding, KV loaded from elsewhere or prompts that arrive in parts,
    tokens cannot be counted so: then the table is updated from the request objects in
    every step.
    """

    waiting: Any  # an OfferedQueue; vLLM's own class declares another type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse_missing_names()
        super().__init__(*args, **kwargs)
        own: Any = self
        self.waiting = OfferedQueue()
        if own.policy == SchedulingPolicy.PRIORITY:
            logger.warning("priorities are ignored: the policy decides.")
        self._groups = _num_groups(own)
        options = SchedulerOptions.of(scheduler_options(own.vllm_config))
        self._hints = Hints(options.max_predicted)
        self._predictor = options.make_predictor(own.max_model_len)
        self._scores = options.start_scorer(_tokenizer_of(own.vllm_config))
        self._unscored: dict[int, Request] = {}
        self._num_score_keys = 0
        self._sessions: set[str] = set()  # requests whose prompts arrive in parts
        self._begin = time.monotonic()
        self.rules = rules_of(own)
        self._slots = self.rules.num_blocks * self.rules.block_size
        self._room = own.max_num_running_reqs + 1
        self._pool = own.kv_cache_manager.block_pool
        self._evicting = False
        self._ones = np.ones(self._room, dtype=np.int64)
        self._resumed = tuple(np.zeros(self._room, dtype=np.int64) for _ in range(2))
        self._out = np.zeros(k.NUM_RESULTS, dtype=np.int64)
        preload(options.make_policy(), self.rules, options.step_time)
        self.attach(RequestTable(), options.make_policy(), step_time=options.step_time)

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
            Returns a request's id if the table has it already; by default each request
            is entered when it arrives.
        recording : bool
            Keep a `StepRecord` of each step until `take_record`.
        """
        self.num_steps = 0
        self.waiting.joined, self.waiting.left = [], []
        self._ended: list[int] = []
        self._changed: list[int] = []
        self._preempted: list[int] = []
        self.recording = recording
        self.records: deque[StepRecord] = deque()
        self._pending: deque[StepRecord] = deque()
        self.table = table
        self._running = Running(table, self._room)
        self._prefixes = forest_of(self, self.waiting.by_id.__getitem__)
        self._policy = FallbackPolicy(policy)
        self.step_time = step_time
        self._clock = clock or (lambda: time.monotonic() - self._begin)
        self._id_of = id_of
        self._last: Decision = NOTHING
        # Whether the only events were that each running request made a token: in the
        # last step; and since the last decision, except for the starts it decided.
        self._quiet = self._calm = False
        self._foreseen = 0
        # Whether all running requests made a token in the last step, so they decode.
        self._steady = False
        self._free_before = 0
        # Whether the table is outdated and must be updated from the request objects.
        self._uncounted = False

    # Methods called by vLLM.

    def add_request(self, request: Any) -> None:
        own: Any = self
        if request.request_id not in own.requests:
            request.sortedf_id = self._enter(request)
            if request.resumable:
                self._sessions.add(request.request_id)
        upper: Any = super()
        upper.add_request(request)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        upper: Any = super()
        own: Any = self
        waiting = self.waiting
        self._cached_tokens = 0
        if self._unscored:
            self._take_scores()
        if waiting.blocked or waiting.skipped:
            for request in waiting.promote(own._handle_blocked_waiting_request):
                self._update_row(request)
        if self._stands():
            output = upper.schedule(*args, **kwargs)
            if not self._each_makes_one(output):
                self._advance(output, [])
                self._calm = False
            if self.recording:
                self._record(output, [], [], NOTHING)
            return output
        # While the engine is paused no request may start, so none is evicted.
        paused = own.pause_state != PauseState.UNPAUSED
        decision = NOTHING if paused else self._decide()
        evicted = self._evict(decision)
        self._put_in_order(decision)
        self._preempted = []
        decoded = self._steady or not self._running.count
        waiting.offer(decision.start)
        output = upper.schedule(*args, **kwargs)
        started = waiting.withdraw()
        if started:
            self._note_found(output, started)
        if evicted and not output.num_scheduled_tokens:
            self.num_steps += 1  # the step evicted requests
        if self._cannot_count():
            self._leave_uncounted(output)
        elif not self._each_makes_one(output, started):
            self._advance(output, started)
        self._calm = (
            decoded
            and self._steady
            and len(started) == len(decision.start)
            and not (evicted or self._preempted or paused)
        )
        self._foreseen = len(started)
        if self.recording:
            self._record(output, started, evicted, decision)
        return output

    def update_from_output(self, *args: Any, **kwargs: Any) -> Any:
        upper: Any = super()
        if not self._pending:
            return upper.update_from_output(*args, **kwargs)
        before = len(self._ended)
        outputs = upper.update_from_output(*args, **kwargs)
        finished = self._ended[before:]
        self.records.append(replace(self._pending.popleft(), finished=finished))
        return outputs

    def shutdown(self) -> None:
        if self._scores is not None:
            self._scores.close()
        upper: Any = super()
        upper.shutdown()

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> None:
        upper: Any = super()
        i = request.sortedf_id
        self._running.catch_up()
        if self._prefixes is not None:
            self._prefixes.stop(i)
        upper._preempt_request(request, *args, **kwargs)
        ints = self.table.ints
        ints[k.RECOMPUTED, i] += ints[k.COMPUTED, i]
        ints[k.COMPUTED, i] = 0
        ints[k.PREEMPTIONS, i] += 1
        self._quiet = self._calm = self._steady = False
        if self._predictor is not None:
            self._predict_again(i, request)
        if not self._evicting:
            self._preempted.append(i)

    def _free_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        upper: Any = super()
        i = request.sortedf_id
        self._ended.append(i)
        if self._prefixes is not None:
            self._prefixes.stop(i)
        self._sessions.discard(request.request_id)
        if self._scores is not None:
            self._unscored.pop(request.sortedf_score_key, None)
            self._scores.cancel(request.sortedf_score_key)
        if self._predictor is not None and request.status in WHOLE:
            self._predictor.observe([request.num_output_tokens])
        return upper._free_request(request, *args, **kwargs)

    @property
    def policy_in_charge(self) -> Policy | None:
        """The policy that decides; None once it has failed."""
        return self._policy.policy

    def take_record(self) -> StepRecord:
        """Return the record of the last step that was not returned yet."""
        return self.records.popleft()

    # Lengths and scores of requests.

    def _enter(self, request: Any) -> int:
        request.sortedf_score_key = 0
        if self._id_of is not None:
            return self._id_of(request)
        params, most = request.sampling_params, min(request.max_tokens, UNKNOWN)
        extra = (None if params is None else params.extra_args) or {}
        learned = None if self._predictor is None else self._predictor.predict()
        hint = self._hints.read(extra, most, learned)
        prefill = request.num_prompt_tokens
        predicted = self._within_cache(prefill, hint.predicted)
        request.sortedf_has_length = hint.has_length
        if self._scores is not None and (not hint.has_length or math.isnan(hint.score)):
            self._ask_score(request, hint.text)
        return self.table.add(prefill, most, predicted, self._clock(), hint.score)

    def _ask_score(self, request: Any, text: str | None) -> None:
        """Request a score of the prompt, or of the text given instead of it."""
        assert self._scores is not None
        prompt = text or request.prompt_token_ids
        if prompt:
            self._num_score_keys += 1
            request.sortedf_score_key = self._num_score_keys
            self._unscored[self._num_score_keys] = request
            self._scores.submit(self._num_score_keys, prompt)

    def _within_cache(self, prefill: int, predicted: float) -> int:
        # A request that does not fit alone by its hint must not wait for ever.
        return max(1, min(round(predicted), self._slots + 1 - prefill))

    def _take_scores(self) -> None:
        """Enter the scores computed by now; a request's own hints take precedence."""
        assert self._scores is not None
        ints = self.table.ints
        for scored in self._scores.take():
            request: Any = self._unscored.pop(scored.key, None)
            if request is None or request.is_finished():
                continue
            i = request.sortedf_id
            score = scored.score if math.isnan(self.table.score[i]) else None
            length = None
            if scored.length is not None and not request.sortedf_has_length:
                longest = min(scored.length, request.max_tokens)
                length = self._within_cache(int(ints[k.PREFILL, i]), longest)
            if self.table.update_hint(i, length, score):
                self._changed.append(i)
        if self._scores.failed is not None:
            self._unscored.clear()

    def _predict_again(self, i: int, request: Any) -> None:
        """Raise the prediction of a preempted request that has outlived it."""
        ints = self.table.ints
        made = int(ints[k.OUTPUT_TOKENS, i])
        if self._id_of is not None or made < ints[k.PREDICTED, i]:
            return
        assert self._predictor is not None
        predicted = self._predictor.predict(made)
        if predicted is not None:
            longest = min(predicted, request.max_tokens)
            prefill = int(ints[k.PREFILL, i])
            self.table.update_hint(i, self._within_cache(prefill, longest), None)

    # Calls of the policy.

    def _stands(self) -> bool:
        """Whether the policy's last decision is still valid, without calling it."""
        waiting, last = self.waiting, self._last
        if (
            not self._calm
            or self.num_steps >= last.quiet_until
            # Forecasts do not know how prompts are cut by the threshold.
            or self.rules.long_prefill_token_threshold
            or waiting.joined
            or len(waiting.left) != self._foreseen
            or self._ended
            or self._changed
            or not self._running.count
        ):
            return False
        free = self._free_now()
        if free > self._free_before:  # blocks were freed late
            return False
        self._free_before = free
        return last.quiet_until_s == math.inf or self._clock() < last.quiet_until_s

    def _decide(self) -> Decision:
        """Return the policy's decision on the current state."""
        waiting = self.waiting
        decision = self._policy.decide(self._state(waiting.joined, waiting.left))
        self._last = decision
        if waiting.joined or waiting.left:
            waiting.joined, waiting.left = [], []
        if self._ended and self._id_of is None:
            # The policy has seen that they ended, so their ids can be used again.
            for i in self._ended:
                self.table.remove(i)
        if self._ended or self._changed:
            self._ended, self._changed = [], []
        return decision

    def _state(self, joined: list[int], left: list[int]) -> State:
        own: Any = self
        running = self._running
        running.catch_up(self._ended)
        if self._uncounted or running.count != len(own.running):
            self._sync_running()
        if self._uncounted:
            for request in own.running:
                self._update_row(request)
            self._uncounted = False
        free = self._free_now()
        events = joined or left or self._ended or self._changed
        quiet = self._quiet and not events and free <= self._free_before
        self._free_before = free
        return State(
            self.num_steps,
            self._clock(),
            running.ids(),
            self.table.view,
            free,
            joined,
            left,
            quiet,
            self.rules,
            self.step_time,
            self.waiting.by_id,
            self._ended,
            self._changed,
            self._prefixes,
        )

    def _sync_running(self) -> None:
        """Copy the running requests from the engine, after changes that it made."""
        own: Any = self
        self._running.replace([request.sortedf_id for request in own.running])
        self._quiet = self._calm = self._steady = False

    def _free_now(self) -> int:
        """Return the number of free blocks, as a request counts them."""
        return int(self._pool.get_num_free_blocks()) // self._groups

    def _evict(self, decision: Decision) -> list[int]:
        own: Any = self
        if not decision.evict:
            return []
        gone = set(decision.evict)
        stamp = time.monotonic()
        stay: list[Request] = []
        evicted: list[Any] = []
        for request in own.running:
            (evicted if request.sortedf_id in gone else stay).append(request)
        if not all(own._request_blocks_can_be_freed(r) for r in evicted):
            return []  # their blocks would be free too late
        self._evicting = True
        own.running[:] = stay
        for request in evicted:
            own._preempt_request(
                request, stamp, drop_stale_output=own.requires_kv_delivery
            )
        self._evicting = False
        ids = [request.sortedf_id for request in evicted]
        self._running.catch_up(ids)
        return ids

    def _put_in_order(self, decision: Decision) -> None:
        own: Any = self
        if decision.order is None or len(decision.order) != len(own.running):
            return  # no new order, or a request could not be evicted
        by_id = {request.sortedf_id: request for request in own.running}
        own.running[:] = [by_id[i] for i in decision.order]
        self._running.replace(decision.order)

    # Counts of a step's tokens.

    def _cannot_count(self) -> bool:
        """Whether requests' states do not follow from the steps' tokens."""
        own: Any = self
        return bool(
            self._sessions
            or own.kv_holding_waiting
            or own.num_spec_tokens
            or own.connector is not None
        )

    def _leave_uncounted(self, output: Any) -> None:
        """Count the step only; the table is updated from the requests later."""
        self._running.catch_up()
        if output.num_scheduled_tokens:
            self.num_steps += 1
        self._uncounted = True
        self._quiet = self._steady = False
        self._out[:] = 0

    def _update_row(self, request: Any) -> None:
        """Update a request's row of the table from the request object."""
        i, ints = request.sortedf_id, self.table.ints
        ints[k.PREFILL, i] = request.num_prompt_tokens
        ints[k.OUTPUT_TOKENS, i] = (
            request.num_output_tokens + request.num_output_placeholders
        )
        ints[k.COMPUTED, i] = request.num_computed_tokens

    def _each_makes_one(self, output: Any, started: Sequence[Any] = ()) -> bool:
        """Count the step if each running request makes one token in it; else False.

        Started requests must make their first token, too.
        """
        own: Any = self
        running, scheduled = self._running, output.num_scheduled_tokens
        count = total = running.count
        if started:
            if self.recording:
                return False
            count += len(started)
            total += sum([scheduled.get(r.request_id, 0) for r in started])
        if not (
            self._steady
            and count
            and len(own.running) == count
            and output.total_num_scheduled_tokens == total
            and len(scheduled) == count
            and (not started or self._start_whole(started))
        ):
            return False
        self.num_steps += 1
        running.each_made_one(self.num_steps)
        self._quiet = not started
        if self.recording:
            self._out[:] = 0
            self._out[k.DECODE_TOKENS] = self._out[k.MADE_TOKENS] = count
        return True

    def _start_whole(self, started: Sequence[Any]) -> bool:
        """Start requests if all their prompts are processed in this step."""
        ids = [request.sortedf_id for request in started]
        computed = [request.num_computed_tokens for request in started]
        return self._running.start_whole(ids, computed)

    def _note_found(self, output: Any, started: list[Any]) -> None:
        """Count cached tokens of the started requests and enter their prefixes."""
        scheduled, size = output.num_scheduled_tokens, self.rules.block_size
        cached = self.table.ints[k.CACHED]
        for request in started:
            i = request.sortedf_id
            found = request.num_computed_tokens - scheduled.get(request.request_id, 0)
            cached[i] += found
            self._cached_tokens += found
            if self._prefixes is not None:
                self._prefixes.start(i, chain_of(request), found // size)

    def _advance(self, output: Any, started: list[Any]) -> None:
        """Count the tokens of each request in this step."""
        own: Any = self
        scheduled = output.num_scheduled_tokens
        if scheduled:
            self.num_steps += 1
        running, table = self._running, self.table
        running.catch_up()
        for request in started:
            # Cached blocks of a prefix count as computed.
            tokens = scheduled.get(request.request_id, 0)
            table.ints[k.COMPUTED, request.sortedf_id] = (
                request.num_computed_tokens - tokens
            )
        before = running.count
        running.start([request.sortedf_id for request in started])
        if self._preempted or running.count != len(own.running):
            self._sync_running()
        count = len(scheduled)
        out = self._out
        out[:] = 0
        served = running.ids()
        if count != len(served):  # the step's tokens did not suffice for all
            requests = own.requests
            served = np.array(
                [requests[name].sortedf_id for name in scheduled], dtype=np.int64
            )
            served.flags.writeable = False
        tokens_of = self._tokens_of(output, before, started)
        resumed, after = self._resumed
        k.advance(
            table.ints, served, tokens_of, count, self.num_steps, resumed, after, out
        )
        whole = count == running.count
        self._steady = bool(whole and out[k.MADE_TOKENS] == count)
        self._quiet = bool(whole and not started and out[k.DECODE_TOKENS] == count)

    def _tokens_of(self, output: Any, before: int, started: list[Any]) -> Any:
        """Tokens of each request in this step, in the order of its service."""
        scheduled = output.num_scheduled_tokens
        count, total = len(scheduled), output.total_num_scheduled_tokens
        if total == count:
            return self._ones
        if self._steady and count == before + len(started):
            theirs = [scheduled[request.request_id] for request in started]
            if total == before + sum(theirs):  # the others made one each
                tokens = self._ones.copy()
                tokens[before:count] = theirs
                return tokens
        return np.fromiter(scheduled.values(), dtype=np.int64, count=count)

    def _record(
        self,
        output: Any,
        started: list[Any],
        evicted: list[int],
        decision: Decision,
    ) -> None:
        """Record the step; completions are added when it is over."""
        self._running.catch_up()
        free = self._free_now()
        out = self._out.tolist()
        resumed = [array[: out[k.RESUMED]].tolist() for array in self._resumed]
        self._pending.append(
            StepRecord(
                step=self.num_steps,
                started=[request.sortedf_id for request in started],
                finished=(),
                preempted=list(self._preempted),
                evicted=evicted,
                resumed=list(zip(*resumed, strict=True)),
                num_running=len(output.num_scheduled_tokens),
                num_waiting=len(self.waiting),
                prefill_tokens=out[k.PREFILL_TOKENS],
                decode_tokens=out[k.DECODE_TOKENS],
                made_tokens=out[k.MADE_TOKENS],
                kv_tokens=int(self.table.ints[k.COMPUTED, self._running.ids()].sum()),
                used_blocks=self.rules.num_blocks - free,
                cached_tokens=self._cached_tokens,
                wake_s=decision.wake_s,
            )
        )


class PolicyScheduler(_WithPolicy, Scheduler):
    """vLLM's scheduler with a policy of this package; async scheduling off."""


class AsyncPolicyScheduler(_WithPolicy, AsyncScheduler):
    """vLLM's async scheduler with a policy of this package."""


def _tokenizer_of(vllm_config: Any) -> str | None:
    """Name of the engine's tokenizer, if it has one."""
    model = vllm_config.model_config
    return None if model.skip_tokenizer_init else model.tokenizer


def _num_groups(scheduler: Any) -> int:
    """Return the number of KV cache groups, each with its own blocks of the pool."""
    return max(len(scheduler.kv_cache_config.kv_cache_groups), 1)


def rules_of(scheduler: Any) -> EngineModel:
    """Return the engine's parameters by its configuration."""
    config = scheduler.scheduler_config
    size = scheduler.block_size
    blocks = scheduler.cache_config.num_gpu_blocks - 1  # one is the null block
    return EngineModel.vllm(
        kv_budget=blocks // _num_groups(scheduler) * size,
        block_size=size,
        max_num_seqs=min(scheduler.max_num_running_reqs, scheduler.max_num_active_reqs),
        max_batched_tokens=scheduler.max_num_scheduled_tokens,
        chunked_prefill=config.enable_chunked_prefill,
        long_prefill_token_threshold=config.long_prefill_token_threshold,
        reserve_prompt=scheduler.scheduler_reserve_full_isl,
        watermark=config.watermark,
        prefix_caching=scheduler.cache_config.enable_prefix_caching,
    )
