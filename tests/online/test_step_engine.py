"""The step engine against its slow twin, and against the papers' model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import step_kernels as k
from online.driver import StalledError, drive
from online.policy import make_policy
from online.requests import RequestTable
from online.state import NOTHING, Decision
from online.step_engine import StepEngine
from sortedf import Instance, OversizeError, Schedule, check, place
from sortedf.engine_model import EngineModel
from tests.online.naive import NaiveEngine, Request, compared_steps
from tests.online.strategies import Restless, rules_for
from tests.strategies import engines, examples, instances

pytestmark = pytest.mark.kernel


@examples(150)
@given(st.data(), st.integers(0, 2**32))
def test_each_step_is_that_of_the_slow_twin(data, seed):
    """Whatever a policy decides, both engines do the same, request by request."""
    instance = data.draw(instances(max_requests=8, arrivals=False))
    rules = data.draw(rules_for(instance))
    table = RequestTable.of_instance(instance)
    policy = Restless(seed)
    engine = StepEngine(table, rules, policy)
    lengths = zip(instance.prefill.tolist(), instance.decode.tolist(), strict=True)
    twin = NaiveEngine(rules, {i: Request(i, s, o) for i, (s, o) in enumerate(lengths)})
    for record in compared_steps(engine, twin, policy.decisions):
        assert record.used_blocks <= rules.num_blocks


@examples(100)
@given(instances(engine=engines()), st.integers(0, 4))
def test_papers_model_is_a_special_case(instance, backfill):
    """Look-ahead in the step engine starts each request where placement does."""
    rules = instance.engine
    policy = make_policy("svf", backfill=backfill)
    log = drive(StepEngine(RequestTable.of_instance(instance), rules, policy))
    s, o = instance.prefill, instance.decode
    order = np.lexsort((np.arange(len(s)), instance.arrival, s * o + o * (o + 1) // 2))
    placed = place(instance, order, backfill=backfill)
    assert log.start_s.tolist() == placed.start.tolist()
    assert log.completion_s.tolist() == placed.completion.tolist()
    assert check(instance, Schedule(instance, log.start_s.astype(np.int64))).feasible
    assert not log.preemptions.any()


def test_a_step_by_hand():
    """Two requests of 3 blocks each in a cache of 5: the second one is preempted."""
    instance = Instance([4, 4], [6, 6], 100)
    rules = EngineModel.vllm(kv_budget=15, block_size=3)
    engine = StepEngine(RequestTable.of_instance(instance), rules, make_policy("fcfs"))
    engine.add(0)
    engine.add(1)
    first = engine.step(0.0)
    assert (first.started, first.prefill_tokens, first.used_blocks) == ([0, 1], 8, 4)
    assert engine.step(1.0).preempted == []  # 5 tokens each, 2 blocks each
    assert engine.step(2.0).preempted == []  # 6 tokens each, 2 blocks each
    fourth = engine.step(3.0)  # 7 tokens: 3 blocks each, and there are 5
    assert fourth.preempted == [1]
    assert fourth.num_running == 1
    assert engine.table.ints[k.RECOMPUTED, 1] == 6


def test_a_request_that_can_never_run_is_reported_and_the_rest_runs():
    """At the head, in the middle and alone: refused by id, nothing hangs."""
    rules = EngineModel.vllm(kv_budget=20, block_size=4)
    for large in (0, 1, 2):
        prefill = [3, 3, 3]
        prefill[large] = 30
        instance = Instance(prefill, [4, 4, 4], 100)
        engine = StepEngine(
            RequestTable.of_instance(instance), rules, make_policy("fcfs")
        )
        log = drive(engine)
        assert list(log.refused) == [large]
        assert f"request {large} needs 9 KV blocks of 4" in log.refused[large]
        assert log.completed.tolist() == [i != large for i in range(3)]
    alone = Instance([30], [4], 100)
    engine = StepEngine(RequestTable.of_instance(alone), rules, make_policy("fcfs"))
    assert drive(engine).num_steps == 0
    with pytest.raises(OversizeError, match="needs 9 KV blocks of 4"):
        engine.add(0)


def test_a_long_prefill_is_not_admitted_and_thrown_out_again():
    """A prompt larger than what is free waits until it has room, then runs once."""
    instance = Instance([40, 60], [30, 10], 1000, [0, 5])
    rules = EngineModel.vllm(kv_budget=96, block_size=8, max_batched_tokens=16)
    log = drive(
        StepEngine(RequestTable.of_instance(instance), rules, make_policy("fcfs"))
    )
    assert log.preemptions.tolist() == [0, 0]
    assert log.completed.all()


@pytest.mark.parametrize("budget", [None, 64])
def test_five_equal_long_requests_of_which_four_fit(budget):
    """With known lengths the fifth waits; by vLLM's own rule a request is preempted."""
    instance = Instance([100] * 5, [100] * 5, 10_000)
    rules = EngineModel.vllm(880, 16, max_batched_tokens=budget)
    engine = StepEngine(RequestTable.of_instance(instance), rules, make_policy("svf"))
    log = drive(engine)
    assert not log.preemptions.any()
    late = np.sort(log.start_step)[-1]
    assert late > 1 + 3 * (budget is not None)
    engine = StepEngine(RequestTable.of_instance(instance), rules, make_policy("fcfs"))
    assert drive(engine).preemptions.any()


@pytest.mark.parametrize("watermark", [0.0, 0.01, 0.02, 0.05, 0.1])
def test_look_ahead_beats_every_watermark(watermark):
    """No preemption, and a makespan not above that of any watermark."""
    rng = np.random.default_rng(5)
    instance = Instance(rng.integers(20, 200, 60), rng.integers(20, 200, 60), 10_000)
    plain = EngineModel.vllm(3200, 16)
    ahead = drive(
        StepEngine(
            RequestTable.of_instance(instance),
            plain,
            make_policy("fcfs", admission="look-ahead", backfill=60),
        )
    )
    marked = EngineModel.vllm(3200, 16, watermark=watermark)
    other = drive(
        StepEngine(RequestTable.of_instance(instance), marked, make_policy("fcfs"))
    )
    assert not ahead.preemptions.any()
    assert ahead.num_steps <= other.num_steps


def test_an_answer_that_ends_early_frees_its_room_in_the_next_step():
    """A request forecast to stay until step 40 leaves in step 5; the next starts."""
    instance = Instance([10, 10], [5, 5], 1000)
    predicted = [40, 40]
    rules = EngineModel.vllm(kv_budget=52, block_size=4)
    table = RequestTable.of_instance(instance, predicted=predicted)
    log = drive(StepEngine(table, rules, make_policy("svf")))
    assert log.completion_step.tolist() == [5, 10]
    assert log.start_step.tolist() == [1, 6]


def test_answers_that_run_longer_than_predicted_are_not_lost():
    """Forecasts ten times too short lead to preemptions, and to no loss."""
    rng = np.random.default_rng(3)
    instance = Instance(rng.integers(5, 50, 40), rng.integers(30, 60, 40), 10_000)
    table = RequestTable.of_instance(instance, predicted=instance.decode // 10)
    rules = EngineModel.vllm(kv_budget=480, block_size=16)
    log = drive(StepEngine(table, rules, make_policy("svf")))
    assert log.completed.all()
    assert log.preemptions.any()
    again = log.recomputed_tokens.sum() + (log.prefill + log.decode - 1).sum()
    assert log.steps.prefill_tokens.sum() + log.steps.num_decoding.sum() == again


def test_cancelled_requests_leave_at_once():
    """A waiting one and a running one; the others never notice."""
    instance = Instance([10] * 3, [20] * 3, 1000)
    rules = EngineModel.vllm(kv_budget=64, block_size=4)
    engine = StepEngine(RequestTable.of_instance(instance), rules, make_policy("svf"))
    for i in range(3):
        engine.add(i)
    engine.step(0.0)
    engine.cancel(0)
    engine.cancel(2)
    engine.cancel(2)  # not there any more
    while engine.num_unfinished:
        engine.step(float(engine.num_steps))
    assert engine.table.ints[k.OUTPUT_TOKENS, :3].tolist() == [1, 20, 0]


class Sleeper:
    """Starts nothing, ever."""

    def decide(self, state):
        return NOTHING


class Liar:
    """Answers with one fixed decision."""

    def __init__(self, decision):
        self.decision = decision

    def decide(self, state):
        return self.decision


def test_a_policy_that_starts_nothing_is_an_error_not_a_hang():
    instance = Instance([1], [1], 10)
    engine = StepEngine(
        RequestTable.of_instance(instance), EngineModel.vllm(10), Sleeper()
    )
    with pytest.raises(StalledError, match="1 requests wait and none will arrive"):
        drive(engine)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision(start=[7]), "start waiting requests only"),
        (Decision(start=[0, 0]), "each once"),
        (Decision(evict=[0]), "evict running requests only"),
        (Decision(order=[0]), "must name all running"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(decision, words):
    instance = Instance([1], [1], 10)
    engine = StepEngine(
        RequestTable.of_instance(instance), EngineModel.vllm(10), Liar(decision)
    )
    engine.add(0)
    with pytest.raises(ValueError, match=words):
        engine.step(0.0)


def test_the_clock_jumps_over_idle_times():
    """Requests that come at 0 and 1000 take two steps each."""
    instance = Instance([1, 1], [2, 2], 10, [0, 1000])
    engine = StepEngine(
        RequestTable.of_instance(instance), EngineModel.vllm(10), make_policy("fcfs")
    )
    log = drive(engine)
    assert log.num_steps == 4
    assert log.completion_s.tolist() == [2.0, 1002.0]


@pytest.mark.parametrize(
    "bad",
    [
        {"kv_budget": 0},
        {"kv_budget": 8, "block_size": 0},
        {"kv_budget": 8, "watermark": 1.0},
        {"kv_budget": 8, "watermark": float("nan")},
        {"kv_budget": 8, "eviction": "swap"},
        {"kv_budget": 8, "max_num_seqs": 0},
    ],
)
def test_rules_out_of_range_are_refused(bad):
    with pytest.raises(ValueError, match=list(bad)[-1]):
        EngineModel.vllm(**bad)


def test_unknown_policies_and_options_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"choose one of: .*fcfs"):
        make_policy("fifo")
    with pytest.raises(ValueError, match="its options: admission, backfill"):
        make_policy("fcfs", depth=3)
