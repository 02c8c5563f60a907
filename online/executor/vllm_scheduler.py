"""The scheduler class for vLLM: any policy of this package inside the engine.

The scheduler side of vLLM's internals; see `vllm_version.TESTED` for the versions.
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
import time
from typing import TYPE_CHECKING, Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.interface import PauseState
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from online.executor.expectations import Arriving, Expectations
from online.executor.offered_queue import OfferedQueue
from online.executor.policy_host import EngineSide, PolicyHost
from online.executor.prefix_cache import chain_of, forest_of
from online.executor.preload import preload
from online.executor.running import Started
from online.executor.scheduler_options import SchedulerOptions, scheduler_options
from online.executor.step_meter import StepMeter, open_step_log, shown_step_time
from online.executor.vllm_rules import rules_of
from online.executor.vllm_version import refuse_missing_names
from online.requests import RequestTable
from online.state import NOTHING
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vllm.v1.request import Request

    from online.state import Decision, Policy
    from online.step_engine import StepRecord

logger = logging.getLogger("sortedf")

engine_logger = logging.getLogger("vllm.sortedf")
"""For news that are no warnings: vLLM shows those of loggers below its own."""

WHOLE = (RequestStatus.FINISHED_STOPPED, RequestStatus.FINISHED_LENGTH_CAPPED)
"""Final states of completed answers, which were not cancelled."""


class _WithPolicy:
    """Code that both scheduler classes add to vLLM's.

    With speculative decoding, KV loaded from elsewhere or prompts that arrive in parts,
    a request's tokens do not follow from those of the steps: then the table is updated
    from the request objects in every step.
    """

    waiting: Any  # an OfferedQueue; vLLM's own class declares another type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse_missing_names()
        super().__init__(*args, **kwargs)
        own: Any = self
        self.waiting = OfferedQueue()
        if own.policy == SchedulingPolicy.PRIORITY:
            logger.warning("priorities are ignored: the policy decides.")
        # Each KV cache group has its own blocks of the pool.
        self._groups = max(len(own.kv_cache_config.kv_cache_groups), 1)
        self._pool = own.kv_cache_manager.block_pool
        self._sessions: set[str] = set()  # requests whose prompts arrive in parts
        self.rules = rules_of(own.vllm_config, own.block_size, num_groups=self._groups)
        options = SchedulerOptions.of(scheduler_options(own.vllm_config))
        self._began = time.monotonic()
        self.expectations = Expectations(
            options,
            longest=own.max_model_len,
            slots=self.rules.num_blocks * self.rules.block_size,
            tokenizer=_tokenizer_of(own.vllm_config),
        )
        preload(options.make_policy(), self.rules, options.step_time or UNIT_STEPS)
        self._step_log = open_step_log(options.step_log)
        self.attach(RequestTable(), options.make_policy(), step_time=options.step_time)

    def attach(
        self,
        table: RequestTable,
        policy: Policy,
        *,
        step_time: StepTime | None = None,
        clock: Callable[[], float] | None = None,
        id_of: Callable[[Request], int] | None = None,
        recording: bool = False,
    ) -> None:
        """Use this table, policy and clock from now on, while there are no requests.

        Parameters
        ----------
        step_time : StepTime, optional
            Measured with the clock if left out.
        clock : callable, optional
            Gives the time in seconds; by default seconds since the engine started.
        id_of : callable, optional
            Returns a request's id if the table has it already; by default each request
            is entered when it arrives.
        recording : bool
            Keep a `StepRecord` of each step until `take_record`.
        """
        own: Any = self
        self._id_of = id_of
        self.expectations.table = table
        engine = EngineSide(
            self.rules,
            own.max_num_running_reqs + 1,
            self.waiting.by_id,
            lambda: [request.sortedf_id for request in own.running],
            lambda name: own.requests[name].sortedf_id,
            forest_of(own, self.waiting.by_id.__getitem__),
        )
        clock = clock or (lambda: time.monotonic() - self._began)
        meter = StepMeter(
            clock, step_time, self.rules.usable_kv, log=self._step_log, show=_show
        )
        self.host = PolicyHost(
            engine,
            table,
            policy,
            meter.step_time,
            clock,
            meter=meter if meter.is_on else None,
            raise_outlived=(
                self.expectations.raise_outlived
                if self.expectations.raises_lengths and id_of is None
                else None
            ),
            owns_rows=id_of is None,
            recording=recording,
        )
        self.waiting.last = self.host.last

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
        waiting, host = self.waiting, self.host
        if self.expectations.awaits_scores:
            host.last.changed += self.expectations.take_scores()
        if waiting.blocked or waiting.skipped:
            for request in waiting.promote(own._handle_blocked_waiting_request):
                self._update_row(request)
        decision = NOTHING
        evicted: Sequence[int] = ()
        # While the engine is paused no request may start, so none is evicted.
        paused = own.pause_state != PauseState.UNPAUSED
        if not (paused or host.stands(self._free_now())):
            self.update_table()
            decision = host.decide(self._free_now())
            evicted = self._evict(decision)
            self._put_in_order(decision)
            waiting.offer(decision.start)
        host.begin_step()
        output = upper.schedule(*args, **kwargs)
        started = self._started(output) if decision.start else ()
        scheduled = output.num_scheduled_tokens
        if evicted and not scheduled:
            host.num_steps += 1  # the step evicted requests
        if self._cannot_count():
            host.leave_uncounted(len(scheduled), output.total_num_scheduled_tokens)
        else:
            host.count(
                scheduled,
                output.total_num_scheduled_tokens,
                started,
                len(own.running),
                as_decided=len(started) == len(decision.start)
                and not (evicted or paused),
            )
        if host.recording:
            host.record(
                started,
                evicted,
                decision,
                num_served=len(scheduled),
                num_waiting=len(waiting),
                free_blocks=self._free_now(),
            )
        return output

    def update_from_output(self, *args: Any, **kwargs: Any) -> Any:
        upper: Any = super()
        own: Any = self
        if not self.host.awaits_end:
            return upper.update_from_output(*args, **kwargs)
        before = len(self.host.last.ended)
        outputs = upper.update_from_output(*args, **kwargs)
        self.host.step_done(self.host.last.ended[before:], busy=bool(own.running))
        return outputs

    def shutdown(self) -> None:
        self.expectations.close()
        if self._step_log is not None:
            self._step_log.close()
        upper: Any = super()
        upper.shutdown()

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> None:
        self.host.preempted(request.sortedf_id)
        if self._id_of is None:
            self.expectations.preempted(request.sortedf_id)
        upper: Any = super()
        upper._preempt_request(request, *args, **kwargs)

    def _free_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.host.ended(request.sortedf_id)
        self._sessions.discard(request.request_id)
        if self._id_of is None:
            whole = request.status in WHOLE
            answer = request.num_output_tokens if whole else None
            self.expectations.ended(request.sortedf_id, answer)
        upper: Any = super()
        return upper._free_request(request, *args, **kwargs)

    # Between vLLM's requests and ids.

    def _enter(self, request: Any) -> int:
        if self._id_of is not None:
            return self._id_of(request)
        params = request.sampling_params
        arriving = Arriving(
            request.num_prompt_tokens,
            request.max_tokens,
            (None if params is None else params.extra_args) or {},
            request.prompt_token_ids,
        )
        return self.expectations.enter(arriving, self.host.now_s())

    def _update_row(self, request: Any) -> None:
        """Update a request's row of the table from the request object."""
        self.host.update_row(
            request.sortedf_id,
            request.num_prompt_tokens,
            request.num_output_tokens + request.num_output_placeholders,
            request.num_computed_tokens,
        )

    def update_table(self) -> None:
        """Update the table to what the engine's requests are now."""
        own: Any = self
        if self.host.uncounted:
            for request in own.running:
                self._update_row(request)
        self.host.catch_up(len(own.running))

    def _free_now(self) -> int:
        """Return the number of free blocks, as a request counts them."""
        return int(self._pool.get_num_free_blocks()) // self._groups

    def _evict(self, decision: Decision) -> Sequence[int]:
        own: Any = self
        if not decision.evict:
            return ()
        gone = set(decision.evict)
        stamp = time.monotonic()
        stay: list[Request] = []
        evicted: list[Any] = []
        for request in own.running:
            (evicted if request.sortedf_id in gone else stay).append(request)
        if not all(own._request_blocks_can_be_freed(r) for r in evicted):
            return ()  # their blocks would be free too late
        own.running[:] = stay
        for request in evicted:
            own._preempt_request(
                request, stamp, drop_stale_output=own.requires_kv_delivery
            )
        ids = [request.sortedf_id for request in evicted]
        self.host.evicted(ids)
        return ids

    def _put_in_order(self, decision: Decision) -> None:
        own: Any = self
        if decision.order is None or len(decision.order) != len(own.running):
            return  # no new order, or a request could not be evicted
        by_id = {request.sortedf_id: request for request in own.running}
        own.running[:] = [by_id[i] for i in decision.order]
        self.host.running.replace(decision.order)

    def _started(self, output: Any) -> list[Started]:
        """Withdraw the offer; return the requests that started."""
        started = []
        for request in self.waiting.withdraw():
            tokens = output.num_scheduled_tokens.get(request.request_id, 0)
            one = Started(request.sortedf_id, tokens, request.num_computed_tokens)
            self.host.found(one, chain_of(request))
            started.append(one)
        return started

    def _cannot_count(self) -> bool:
        """Whether requests' states do not follow from the steps' tokens."""
        own: Any = self
        return bool(
            self._sessions
            or own.kv_holding_waiting
            or own.num_spec_tokens
            or own.connector is not None
        )

    def take_record(self) -> StepRecord:
        """Return the record of the last step that was not returned yet."""
        return self.host.take_record()


class PolicyScheduler(_WithPolicy, Scheduler):
    """vLLM's scheduler with a policy of this package; async scheduling off."""


class AsyncPolicyScheduler(_WithPolicy, AsyncScheduler):
    """vLLM's async scheduler with a policy of this package."""


def _show(step_time: StepTime, num_steps: int) -> None:
    engine_logger.info("%s", shown_step_time(step_time, num_steps))


def _tokenizer_of(vllm_config: Any) -> tuple[str, str | None] | None:
    """Name and revision of the engine's tokenizer, if it has one."""
    model = vllm_config.model_config
    if model.skip_tokenizer_init:
        return None
    return model.tokenizer, model.tokenizer_revision
