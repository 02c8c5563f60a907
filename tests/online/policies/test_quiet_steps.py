"""A policy that need not be asked in quiet steps: the run is the same if it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.hint_trust import HintTrust
from online.policies.parts.preempting import Preempting
from online.policy import make_policy
from online.predictors import make_predictor
from online.requests import RequestTable
from online.state import NOTHING, Decision
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import StepTime
from tests.online.policies.engine_runs import POLICY_OPTIONS, cases
from tests.strategies import examples

pytestmark = pytest.mark.kernel

STEP_TIMES = (StepTime(), StepTime(0.5, 0.01, 0.02, 0.001))


class Counting:
    """Counts how often a policy is asked."""

    def __init__(self, policy):
        self.policy = policy
        self.asked = 0

    def decide(self, state):
        self.asked += 1
        return self.policy.decide(state)


def records(
    instance, rules, policy, step_time, news, *, predicted=None, predictor=None,
    **asking,
):  # fmt: skip
    """All records of a run in which things happen that no policy foresees.

    The order of completions in a step is the engine's, which a policy need not keep
    while no preemption is possible.

    `news` says before which steps a request is cancelled, or its score and length
    become known: (step, id, predicted, score), cancelled if both are None.
    """
    table = RequestTable.of_instance(instance, predicted=predicted)
    if predictor == "trust":
        asking["trust"] = HintTrust()
    else:
        asking["predictor"] = predictor and make_predictor(predictor, least=2)
    engine = StepEngine(table, rules, policy, step_time, **asking)
    coming = np.argsort(instance.arrival, kind="stable").tolist()
    now_s, seen, steps = 0.0, [], 0
    while coming or engine.num_unfinished:
        while coming and instance.arrival[coming[0]] <= now_s:
            engine.add(coming.pop(0))
        for step, i, predicted, score in news:
            if step == steps and i < instance.num_requests and i not in coming:
                if predicted is None and score is None:
                    engine.cancel(i)
                else:
                    engine.update_hint(i, predicted=predicted, score=score)
        steps += 1
        record = engine.step(now_s)
        seen.append(
            (record.step, list(record.started), sorted(record.finished),
             list(record.preempted), list(record.evicted), record.num_running,
             record.used_blocks, record.prefill_tokens, record.num_decoding)
        )  # fmt: skip
        now_s += step_time.seconds(
            record.prefill_tokens, record.num_decoding, record.kv_tokens
        )
        assert steps < 5000, "the run does not come to an end"
    return seen


news_items = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 7),
        st.none() | st.integers(1, 12),
        st.none() | st.floats(-3, 3),
    ),
    max_size=6,
)


@pytest.mark.parametrize(("name", "options"), POLICY_OPTIONS)
@given(
    cases(max_requests=8, max_length=14),
    st.sampled_from(STEP_TIMES),
    st.sampled_from([None, 0.0, 4.0]),
    news_items,
    st.sampled_from([None, "history", "trust"]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([None, None, 0.0, 1.5]),
)
@examples(25)
def test_asking_or_not_makes_no_difference(
    name, options, case, step_time, max_wait_s, news, predictor, off, max_passed
):
    """Lengths that are wrong, requests that are cancelled, what is told too late."""
    instance, rules = case
    predicted = np.maximum(instance.decode * off, 1).astype(int)
    runs = [
        records(
            instance, rules,
            make_policy(name, max_wait_s=max_wait_s, max_passed=max_passed, **options),
            step_time, news, predicted=predicted, predictor=predictor,
            always_ask=always,
        )
        for always in (False, True)
    ]  # fmt: skip
    assert runs[0] == runs[1]


class Forgetful:
    """Has a preemptive policy compute each decision again, as if none ever stood."""

    def __init__(self, policy):
        self.policy = policy

    def decide(self, state):
        self.policy._standing = NOTHING
        return self.policy.decide(state)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name, options in POLICY_OPTIONS
        if isinstance(make_policy(name, **options), Preempting)
    ],
)
@given(
    cases(max_requests=8, max_length=25),
    st.sampled_from(STEP_TIMES),
    news_items,
    st.sampled_from([0.3, 1.0, 2.0]),
    st.sampled_from(["recompute", "restart"]),
)
@examples(100)
def test_a_standing_answer_is_as_good_as_a_new_one(
    name, options, case, step_time, news, off, eviction
):
    """Two that run draw level when they outlive their predictions, and more.

    Being asked does not help: the policy itself gives the old answer while it stands.
    """
    instance, rules = case
    rules = replace(rules, eviction=eviction)
    predicted = np.maximum(instance.decode * off, 1).astype(int)
    runs = []
    for forgetful in (False, True):
        policy = make_policy(name, **options)
        runs.append(
            records(
                instance, rules, Forgetful(policy) if forgetful else policy,
                step_time, news, predicted=predicted, always_ask=forgetful,
            )
        )  # fmt: skip
    assert runs[0] == runs[1]


@given(cases(max_requests=8, max_length=14), st.sampled_from(STEP_TIMES))
def test_planned_starts_too(case, step_time):
    instance, rules = case
    start_s = 3.0 * np.arange(instance.num_requests)[::-1]
    runs = [
        records(instance, rules, make_policy("plan", start_s=start_s), step_time, [],
                always_ask=always)
        for always in (False, True)
    ]  # fmt: skip
    assert runs[0] == runs[1]


@pytest.mark.parametrize("off", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "name", ["fcfs", "svf", "mc-sf", "svf-aged", "sorted-f-online"]
)
def test_most_steps_are_quiet_under_load(name, off):
    """Ten or twenty run for 200 steps each, others wait: a few questions for each."""
    instance = Instance([10] * 40, [200] * 40, 2200)
    policy = Counting(make_policy(name))
    done = records(
        instance, EngineModel.vllm(2200), policy, StepTime(), [],
        predicted=(instance.decode * off).astype(int),
    )  # fmt: skip
    assert len(done) > 400
    assert policy.asked <= 4 * 40


@given(cases(max_requests=8, max_length=14), st.sampled_from([0.5, 1.0, 2.0]))
@examples(150)
@pytest.mark.parametrize("backfill", [0, 2])
def test_a_forecast_that_still_holds_is_as_good_as_a_new_one(backfill, case, off):
    """What a decision says of the steps to come never delays a request."""
    instance, rules = case
    predicted = np.maximum(instance.decode * off, 1).astype(int)
    runs = []
    for forgetful in (False, True):
        policy = make_policy("svf", backfill=backfill)
        if forgetful:
            policy.look.wait_until = lambda ids: 0
        runs.append(
            records(instance, rules, policy, StepTime(), [], predicted=predicted)
        )
    assert runs[0] == runs[1]


def test_an_answer_stands_for_steps_and_seconds():
    answer = Decision(quiet_until=7, quiet_until_s=3.0)
    assert answer.stands(6, 2.9)
    assert not answer.stands(7, 2.9)
    assert not answer.stands(6, 3.0)
    assert not Decision().stands(0, -math.inf)
