"""A second engine uses the host of a policy: the step engine, seen from outside."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import step_kernels as k
from online.driver import drive
from online.executor import policy_host
from online.executor.policy_host import EngineSide, PolicyHost
from online.executor.running import Started
from online.hint_trust import HintTrust
from online.policy import make_policy
from online.requests import RequestTable
from online.state import NOTHING
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS
from tests.online.policies.engine_runs import cases
from tests.strategies import examples

pytestmark = pytest.mark.kernel

ALL = slice(None)
COUNTED = [k.PREFILL, k.COMPUTED, k.OUTPUT_TOKENS, k.PREEMPTIONS, k.RECOMPUTED]


class Outside:
    """Runs a step engine, of which a policy host sees names and tokens only.

    The host has a table of its own, which it must keep equal. In every
    `uncounted`-th step it is not told what the tokens were, but before it decides next.
    """

    def __init__(
        self,
        instance,
        rules,
        policy,
        *,
        recording,
        hints=None,
        trust=None,
        uncounted=0,
        meter=None,
    ):
        self.engine = StepEngine(
            RequestTable.of_instance(instance), rules, self, always_ask=True
        )
        self.table = self.engine.table
        self.rules = rules
        self.waiting: dict[int, None] = {}
        self.running: list[int] = []
        self.asked = self.now_s = self.steps = 0
        self.uncounted = uncounted
        side = EngineSide(
            rules, instance.num_requests + 1, self.waiting, lambda: self.running,
            lambda name: int(name.removeprefix("request ")), None,
        )  # fmt: skip
        self.host = PolicyHost(
            side, RequestTable.of_instance(instance, predicted=hints), policy,
            UNIT_STEPS,
            lambda: self.now_s, meter=meter, owns_rows=False, recording=recording,
            raise_outlived=None if trust is None else self.raise_outlived,
        )  # fmt: skip
        self.trust = trust

    @property
    def num_unfinished(self):
        return self.engine.num_unfinished

    def add(self, i):
        self.engine.add(i)
        self.waiting[i] = None
        self.host.last.joined.append(i)
        if self.trust is not None:
            ints = self.host.table.ints
            length, _ = self.trust.enter(i, i % 3, int(ints[k.PREDICTED, i]), math.nan)
            ints[k.PREDICTED, i] = min(length, self.longest(i))

    def longest(self, i):
        rules = self.rules
        slots = rules.num_blocks * rules.block_size - rules.extra_slots
        return slots + 1 - int(self.table.ints[k.PREFILL, i])

    def raise_outlived(self, ids):
        return self.trust.raise_outlived(self.host.table, ids, self.longest)

    def decide(self, state):
        """Let the host decide for the step engine."""
        free = state.free_blocks
        assert self.running == state.running.tolist()
        if self.host.stands(free):
            return self.answer
        self.asked += 1
        if self.host.uncounted:
            for i in self.running:
                tokens = self.table.ints[[k.PREFILL, k.OUTPUT_TOKENS, k.COMPUTED], i]
                self.host.update_row(i, *tokens.tolist())
        self.host.catch_up(len(self.running))
        ours, theirs = self.host.table.ints[COUNTED], self.table.ints[COUNTED]
        known = [*self.waiting, *self.running] if self.uncounted else ALL
        assert (ours[:, known] == theirs[:, known]).all()
        self.answer = self.host.decide(free)
        return self.answer

    def step(self, now_s):
        ints = self.table.ints
        self.now_s = now_s
        before = ints[[k.COMPUTED, k.RECOMPUTED]].sum(axis=0)
        self.answer = NOTHING
        record = self.engine.step(now_s)
        after = ints[[k.COMPUTED, k.RECOMPUTED]].sum(axis=0)
        self.follow(record, (after - before))
        return record

    def stop(self, ids):
        for i in ids:
            self.host.preempted(i)
            self.running.remove(i)
            self.waiting[i] = None
            self.host.last.joined.append(i)
        if self.trust is not None:
            self.raise_outlived(np.array(ids, dtype=np.int64))

    def follow(self, record, tokens):
        """Tell the host what an engine would."""
        host, ints, answer = self.host, self.table.ints, self.answer
        self.stop(record.evicted)
        host.evicted(record.evicted)
        if answer.order is not None and record.num_running:
            kept = [i for i in answer.order if i in self.running]
            host.running.replace(kept)
            self.running = kept
        host.begin_step()
        self.stop(record.preempted)
        for i in record.started:
            del self.waiting[i]
            host.last.left.append(i)
        self.running += record.started
        started = [
            Started(i, int(tokens[i]), int(ints[k.COMPUTED, i])) for i in record.started
        ]
        scheduled = {f"request {i}": int(tokens[i]) for i in self.running if tokens[i]}
        if record.evicted and not scheduled:
            host.num_steps += 1
        self.steps += 1
        if self.uncounted and self.steps % self.uncounted == 0:
            host.leave_uncounted(len(scheduled), sum(scheduled.values()))
        else:
            host.count(
                scheduled,
                sum(scheduled.values()),
                started,
                len(self.running),
                as_decided=len(started) == len(answer.start) and not record.evicted,
            )
        if host.recording:
            host.record(
                started, record.evicted, answer, num_served=len(scheduled),
                num_waiting=len(self.waiting),
                free_blocks=self.rules.num_blocks - record.used_blocks,
            )  # fmt: skip
        for i in record.finished:
            self.running.remove(i)
            host.ended(i)
            if self.trust is not None:
                self.trust.ended(i, int(ints[k.OUTPUT_TOKENS, i]))
        if host.recording:
            host.step_done(record.finished, busy=bool(self.running))
            assert as_lists(host.take_record()) == as_lists(record)


def as_lists(record):
    """All fields of a record, whatever kind of sequence they are."""
    fields = asdict(record)
    return {
        name: list(value) if isinstance(value, list | tuple) else value
        for name, value in fields.items()
    }


@pytest.mark.parametrize(
    ("recording", "uncounted"), [(False, 0), (True, 0), (False, 1), (False, 3)]
)
@pytest.mark.parametrize("name", ["svf", "fcfs", "srpt", "las", "sorted-f-online"])
@given(case=cases(max_requests=8, max_length=14))
@examples(25)
def test_a_host_decides_as_the_step_engine_does(name, recording, uncounted, case):
    """Whatever is cut, preempted, evicted and put in another order."""
    instance, rules = case
    rules = replace(rules, eviction="recompute")
    alone = drive(
        StepEngine(RequestTable.of_instance(instance), rules, make_policy(name))
    )
    outside = Outside(
        instance, rules, make_policy(name), recording=recording, uncounted=uncounted
    )
    log = drive(outside)
    assert log.start_step.tolist() == alone.start_step.tolist()
    assert log.completion_step.tolist() == alone.completion_step.tolist()
    assert log.preemptions.tolist() == alone.preemptions.tolist()


@pytest.mark.parametrize("believes", [True, False])
@pytest.mark.parametrize("name", ["svf", "srpt", "sorted-f-amin"])
@given(
    case=cases(max_requests=8, max_length=20), off=st.sampled_from([0.1, 0.5, 1.0, 3.0])
)
@examples(25)
def test_hints_are_trusted_as_in_the_step_engine(name, believes, case, off):
    """An outlived length is raised in the same step, though the table is behind."""
    instance, rules = case
    rules = replace(rules, eviction="recompute")
    hints = np.maximum(instance.decode * off, 1).astype(int)
    clients = [i % 3 for i in range(instance.num_requests)]
    alone = drive(
        StepEngine(
            RequestTable.of_instance(instance, predicted=hints), rules,
            make_policy(name), trust=HintTrust(believes=believes), clients=clients,
        )
    )  # fmt: skip
    outside = Outside(
        instance, rules, make_policy(name), recording=False, hints=hints,
        trust=HintTrust(believes=believes),
    )  # fmt: skip
    log = drive(outside)
    assert log.start_step.tolist() == alone.start_step.tolist()
    assert log.completion_step.tolist() == alone.completion_step.tolist()


@pytest.fixture
def counted(monkeypatch):
    """Tables of the steps whose tokens are counted one request at a time."""
    tables = []
    advance = k.advance

    def advance_and_note(table, *others):
        tables.append(table)
        advance(table, *others)

    monkeypatch.setattr(policy_host.k, "advance", advance_and_note)
    return tables


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("trust", [False, True])
def test_most_steps_cost_neither_a_question_nor_a_count(counted, recording, trust):
    """Forty requests of 200 tokens, ten at a time: a few questions for each.

    Only a step in which a request starts is counted in full, if it is recorded.
    """
    instance = Instance([10] * 40, [200] * 40, 2200)
    outside = Outside(
        instance, EngineModel.vllm(2200), make_policy("svf"), recording=recording,
        trust=HintTrust() if trust else None,
    )  # fmt: skip
    log = drive(outside)
    assert np.all(log.completed)
    assert outside.asked < 4 * 40
    # Without JIT the step engine's own counts are seen, too.
    whole = sum(table is outside.host.table.ints for table in counted)
    assert whole <= (len(set(log.start_step.tolist())) if recording else 1)
