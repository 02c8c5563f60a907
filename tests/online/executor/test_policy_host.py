"""A second engine uses the host of a policy: the step engine, seen from outside."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online import step_kernels as k
from online.driver import drive
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

pytestmark = pytest.mark.kernel

COUNTED = (k.PREFILL, k.COMPUTED, k.OUTPUT_TOKENS, k.PREEMPTIONS, k.RECOMPUTED)


class Outside:
    """Runs a step engine, of which a policy host sees names and tokens only.

    The host has a table of its own, which it must keep equal.
    """

    def __init__(self, instance, rules, policy, *, recording, hints=None, trust=None):
        self.engine = StepEngine(
            RequestTable.of_instance(instance), rules, self, always_ask=True
        )
        self.table = self.engine.table
        self.rules = rules
        self.waiting: dict[int, None] = {}
        self.running: list[int] = []
        self.asked = self.now_s = 0
        side = EngineSide(
            rules, instance.num_requests + 1, self.waiting, lambda: self.running,
            lambda name: int(name.removeprefix("request ")), None,
        )  # fmt: skip
        self.host = PolicyHost(
            side, RequestTable.of_instance(instance, predicted=hints), policy,
            UNIT_STEPS,
            lambda: self.now_s, owns_rows=False, recording=recording,
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
        self.host.catch_up(len(self.running))
        ints = self.host.table.ints
        n = self.table.num_ids
        assert (ints[COUNTED, :n] == self.table.ints[COUNTED, :n]).all()
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
        host.count(
            scheduled,
            sum(scheduled.values()),
            started,
            len(self.running),
            as_decided=len(started) == len(answer.start) and not record.evicted,
        )
        for i in record.finished:
            self.running.remove(i)
            host.ended(i)
            if self.trust is not None:
                self.trust.ended(i, int(ints[k.OUTPUT_TOKENS, i]))


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("name", ["svf", "fcfs", "srpt", "las", "sorted-f-online"])
@given(case=cases(max_requests=8, max_length=14))
@settings(max_examples=25)
def test_a_host_decides_as_the_step_engine_does(name, recording, case):
    """Whatever is cut, preempted, evicted and put in another order."""
    instance, rules = case
    rules = replace(rules, eviction="recompute")
    alone = drive(
        StepEngine(RequestTable.of_instance(instance), rules, make_policy(name))
    )
    outside = Outside(instance, rules, make_policy(name), recording=recording)
    log = drive(outside)
    assert log.start_step.tolist() == alone.start_step.tolist()
    assert log.completion_step.tolist() == alone.completion_step.tolist()
    assert log.preemptions.tolist() == alone.preemptions.tolist()


@pytest.mark.parametrize("believes", [True, False])
@pytest.mark.parametrize("name", ["svf", "srpt", "sorted-f-amin"])
@given(
    case=cases(max_requests=8, max_length=20), off=st.sampled_from([0.1, 0.5, 1.0, 3.0])
)
@settings(max_examples=25)
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


def test_it_is_asked_seldom():
    """Forty requests of 200 tokens, ten at a time: a few questions for each."""
    instance = Instance([10] * 40, [200] * 40, 2200)
    outside = Outside(
        instance, EngineModel.vllm(2200), make_policy("svf"), recording=False
    )
    log = drive(outside)
    assert np.all(log.completed)
    assert outside.asked < 4 * 40
