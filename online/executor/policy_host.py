"""A policy inside a real engine: what it sees, its decisions, and counts of tokens.

Nothing here depends on a particular engine.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from online import step_kernels as k
from online.executor.fallback_policy import FallbackPolicy
from online.executor.running import Running
from online.hint_trust import steps_to_outlive
from online.last_decision import LastDecision
from online.step_engine import StepRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from online.executor.running import Started
    from online.executor.step_meter import StepMeter
    from online.prefix_forest import Chain, PrefixForest
    from online.requests import RequestTable
    from online.state import Decision, Policy
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

    Ints = NDArray[np.int64]


class EngineSide(NamedTuple):
    """What an engine gives to the host of its policy.

    Attributes
    ----------
    rules : EngineModel
    room : int
        Largest number of running requests.
    waiting : collection of int
        Ids of the waiting requests that may start; the engine changes it.
    running : callable
        Returns the ids of its running requests, in its order.
    id_of : callable
        Returns the id of the request with one of its names.
    prefixes : PrefixForest, optional
        Shared prefixes, with prefix caching.
    """

    rules: EngineModel
    room: int
    waiting: Collection[int]
    running: Callable[[], list[int]]
    id_of: Callable[[str], int]
    prefixes: PrefixForest | None


class PolicyHost:
    """Calls a policy for an engine and keeps the table of its requests up to date.

    A step in which each running request makes one token, and no other event happens,
    costs a few comparisons: the policy's last decision stands, and the table is updated
    later.

    Parameters
    ----------
    engine : EngineSide
    table : RequestTable
    policy : Policy
    step_time : StepTime
    clock : callable
        Returns the time in seconds.
    meter : StepMeter, optional
        Measures steps; its model then replaces `step_time`.
    raise_outlived : callable, optional
        Raises the expected lengths of those running requests that have outlived them,
        at once; returns the ids of these.
    owns_rows : bool
        Remove requests from the table after they have ended.
    recording : bool
        Keep a `StepRecord` of each step.

    Attributes
    ----------
    num_steps : int
        Steps so far in which something happened.
    running : Running
    last : LastDecision
    uncounted : bool
        Whether the table is outdated and the engine must call `update_row`.
    """

    def __init__(
        self,
        engine: EngineSide,
        table: RequestTable,
        policy: Policy,
        step_time: StepTime,
        clock: Callable[[], float],
        *,
        meter: StepMeter | None = None,
        raise_outlived: Callable[[Ints], list[int]] | None = None,
        owns_rows: bool,
        recording: bool,
    ) -> None:
        self.engine = engine
        self.table = table
        self.num_steps = 0
        self.running = Running(table, engine.room)
        self.last = LastDecision(engine.rules, step_time)
        self.uncounted = False
        self.recording = recording
        self._policy = FallbackPolicy(policy)
        self._clock = clock
        self._meter = meter
        self._raise_outlived = raise_outlived
        self._next_outlived: float = math.inf
        self._owns_rows = owns_rows
        self._preempted: list[int] = []
        self._cached_tokens = 0
        self._ones: Ints = np.ones(engine.room, dtype=np.int64)
        self._resumed = tuple(np.zeros(engine.room, dtype=np.int64) for _ in range(2))
        self._out: Ints = np.zeros(k.NUM_RESULTS, dtype=np.int64)
        self._records: deque[StepRecord] = deque()
        self._pending: deque[StepRecord] = deque()

    @property
    def policy(self) -> Policy | None:
        """The policy that decides; None once it has failed."""
        return self._policy.policy

    def now_s(self) -> float:
        """Return the time in seconds."""
        return self._clock()

    # Decisions.

    def stands(self, free_blocks: int) -> bool:
        """Whether the policy's last decision is still valid, without calling it."""
        return self.num_steps < self._next_outlived and self.last.stands(
            self.num_steps, self._clock, self.running.count, free_blocks
        )

    def catch_up(self, num_running: int) -> None:
        """Enter the tokens counted so far and remove what has ended.

        `num_running` is the engine's number of running requests.
        """
        self.running.catch_up(self.last.ended)
        if self.uncounted or self.running.count != num_running:
            self._copy_running()
        self.uncounted = False

    def decide(self, free_blocks: int) -> Decision:
        """Return the policy's decision on the current state, after `catch_up`."""
        last, ended, ids = self.last, self.last.ended, self.running.ids()
        if self._raise_outlived is not None:
            last.changed += self._raise_outlived(ids)
        decision = last.ask(
            self._policy,
            self.num_steps,
            self._clock(),
            ids,
            self.table.view,
            free_blocks,
            self.engine.waiting,
            self.engine.prefixes,
        )
        if self._raise_outlived is not None:
            here = np.append(ids, np.array(decision.start, dtype=np.int64))
            self._next_outlived = self.num_steps + steps_to_outlive(self.table, here)
        if self._owns_rows:
            # The policy has seen that they ended, so their ids can be used again.
            for i in ended:
                self.table.remove(i)
        return decision

    # Events.

    def begin_step(self) -> None:
        """Begin a step, after the decision's evictions."""
        self._preempted = []
        self._cached_tokens = 0
        if self._meter is not None:
            self._meter.begin()

    def preempted(self, i: int) -> None:
        """Enter that a running request loses its KV."""
        self.running.catch_up()
        if self.engine.prefixes is not None:
            self.engine.prefixes.stop(i)
        ints = self.table.ints
        ints[k.RECOMPUTED, i] += ints[k.COMPUTED, i]
        ints[k.COMPUTED, i] = 0
        ints[k.PREEMPTIONS, i] += 1
        self.last.disturb()
        self._preempted.append(i)

    def evicted(self, ids: Sequence[int]) -> None:
        """Enter that requests preempted before were evicted by the decision."""
        self.running.catch_up(ids)

    def ended(self, i: int) -> None:
        """Enter that a request completed or was cancelled."""
        self.last.ended.append(i)
        if self.engine.prefixes is not None:
            self.engine.prefixes.stop(i)

    def found(self, one: Started, chain: Chain) -> None:
        """Count a started request's tokens that were in the cache, and its prefix."""
        found = one.computed - one.tokens
        self.table.ints[k.CACHED, one.i] += found
        self._cached_tokens += found
        if self.engine.prefixes is not None:
            blocks = found // self.engine.rules.block_size
            self.engine.prefixes.start(one.i, chain, blocks)

    def update_row(
        self, i: int, prefill: int, output_tokens: int, computed: int
    ) -> None:
        """Enter a request's tokens as the engine counts them."""
        ints = self.table.ints
        ints[k.PREFILL, i] = prefill
        ints[k.OUTPUT_TOKENS, i] = output_tokens
        ints[k.COMPUTED, i] = computed

    # Counts of a step's tokens.

    def count(
        self,
        scheduled: Mapping[str, int],
        total: int,
        started: Sequence[Started],
        num_running: int,
        *,
        as_decided: bool,
    ) -> None:
        """Count the tokens of a step.

        Parameters
        ----------
        scheduled : mapping of str to int
            Tokens of each served request, by the engine's names, in its order.
        total : int
            Their sum.
        started : sequence of Started
        num_running : int
            The engine's number of running requests, with the started ones.
        as_decided : bool
            Whether the engine did exactly what the policy decided.
        """
        as_decided = as_decided and not self._preempted
        if self._each_makes_one(len(scheduled), total, started, num_running):
            self.last.after_step(
                all_decoded=not started, all_made=True, as_decided=as_decided
            )
            prompts = sum([one.tokens for one in started])
            self._measure(prompts, len(scheduled) - len(started), quiet=not started)
        else:
            self._advance(scheduled, total, started, num_running, as_decided)
            out = self._out
            self._measure(int(out[k.PREFILL_TOKENS]), int(out[k.NUM_DECODING]))

    def leave_uncounted(self, num_scheduled: int, total: int) -> None:
        """Count a step only; the engine updates the table before the next decision.

        Parameters
        ----------
        num_scheduled, total : int
            Requests served, and their tokens.
        """
        self.running.catch_up()
        self._measure(total - num_scheduled, num_scheduled)
        if num_scheduled:
            self.num_steps += 1
        self.uncounted = True
        self.last.disturb()
        self._out[:] = 0

    def _measure(self, prompts: int, decoding: int, *, quiet: bool = False) -> None:
        """Enter a step's tokens for the measurement of its time."""
        if self._meter is None:
            return
        counts = None
        if prompts + decoding and self._meter.wants(quiet=quiet):
            self.running.catch_up()
            held = int(self.table.ints[k.COMPUTED, self.running.ids()].sum())
            counts = (prompts, decoding, held)
        self._meter.planned(counts)

    def _copy_running(self) -> None:
        """Copy the running requests from the engine, after changes that it made."""
        self.running.replace(self.engine.running())
        self.last.disturb()

    def _each_makes_one(
        self, served: int, total: int, started: Sequence[Started], num_running: int
    ) -> bool:
        """Count the step if each running request makes one token in it; else False.

        Started requests must make their first token, too.
        """
        running = self.running
        count = expected = running.count
        if started:
            if self.recording:
                return False
            count += len(started)
            expected += sum([one.tokens for one in started])
        if not (
            self.last.all_decode
            and count
            and num_running == count
            and total == expected
            and served == count
            and (not started or running.start_whole(started))
        ):
            return False
        self.num_steps += 1
        running.each_made_one(self.num_steps)
        if self.recording:
            self._out[:] = 0
            self._out[k.NUM_DECODING] = self._out[k.NEW_OUTPUT] = count
        return True

    def _advance(
        self,
        scheduled: Mapping[str, int],
        total: int,
        started: Sequence[Started],
        num_running: int,
        as_decided: bool,
    ) -> None:
        """Count the tokens of each request in this step."""
        if scheduled:
            self.num_steps += 1
        running, table = self.running, self.table
        running.catch_up()
        for one in started:  # cached blocks of a prefix count as computed
            table.ints[k.COMPUTED, one.i] = one.computed - one.tokens
        before = running.count
        running.start([one.i for one in started])
        if self._preempted or running.count != num_running:
            self._copy_running()
        count = len(scheduled)
        served = running.ids()
        if count != len(served):  # the step's tokens did not suffice for all
            id_of = self.engine.id_of
            served = np.array([id_of(name) for name in scheduled], dtype=np.int64)
            served.flags.writeable = False
        tokens = self._tokens_of(scheduled, total, started, before)
        out, (resumed, after) = self._out, self._resumed
        out[:] = 0
        k.advance(
            table.ints, served, tokens, count, self.num_steps, resumed, after, out
        )
        whole = count == running.count
        self.last.after_step(
            all_decoded=bool(whole and not started and out[k.NUM_DECODING] == count),
            all_made=bool(whole and out[k.NEW_OUTPUT] == count),
            as_decided=as_decided,
        )

    def _tokens_of(
        self,
        scheduled: Mapping[str, int],
        total: int,
        started: Sequence[Started],
        before: int,
    ) -> Ints:
        """Tokens of each request in this step, in the order of its service."""
        count = len(scheduled)
        if total == count:
            return self._ones
        if self.last.all_decode and count == before + len(started):
            theirs = [one.tokens for one in started]
            if total == before + sum(theirs):  # the others made one each
                tokens = self._ones.copy()
                tokens[before:count] = theirs
                return tokens
        return np.fromiter(scheduled.values(), dtype=np.int64, count=count)

    # Records.

    def record(
        self,
        started: Sequence[Started],
        evicted: Sequence[int],
        decision: Decision,
        *,
        num_served: int,
        num_waiting: int,
        free_blocks: int,
    ) -> None:
        """Record the step; completions are added when it is over."""
        self.running.catch_up()
        out = self._out.tolist()
        resumed = [array[: out[k.RESUMED]].tolist() for array in self._resumed]
        self._pending.append(
            StepRecord(
                step=self.num_steps,
                started=[one.i for one in started],
                finished=(),
                preempted=list(self._preempted),
                evicted=evicted,
                resumed=list(zip(*resumed, strict=True)),
                num_running=num_served,
                num_waiting=num_waiting,
                prefill_tokens=out[k.PREFILL_TOKENS],
                num_decoding=out[k.NUM_DECODING],
                output_tokens=out[k.NEW_OUTPUT],
                kv_tokens=int(self.table.ints[k.COMPUTED, self.running.ids()].sum()),
                used_blocks=self.engine.rules.num_blocks - free_blocks,
                cached_tokens=self._cached_tokens,
                wake_s=decision.wake_s,
            )
        )

    @property
    def awaits_end(self) -> bool:
        """Whether a step is recorded or measured, so that `step_done` is needed."""
        return bool(self._pending) or self._meter is not None

    def step_done(self, finished: Sequence[int], *, busy: bool) -> None:
        """End the earliest step under way.

        Parameters
        ----------
        finished : sequence of int
            Requests that completed in it.
        busy : bool
            Whether requests are running.
        """
        if self._pending:
            self._records.append(replace(self._pending.popleft(), finished=finished))
        if self._meter is not None and self._meter.done(busy=busy):
            self.last.step_time = self._meter.step_time
            self.last.disturb()

    def take_record(self) -> StepRecord:
        """Return the record of the last step that was not returned yet."""
        return self._records.popleft()
