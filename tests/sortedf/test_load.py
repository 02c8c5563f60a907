"""Offered load: its definition, and what happens around 1.0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.arrivals import arrive
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.load import busy_s, offered_load, rate_of_load
from sortedf.step_time import PRESETS, UNIT_STEPS
from sortedf.traces import Trace
from tests.online.runs import STEP_TIMES
from tests.online.strategies import rules_for
from tests.strategies import examples, instances

pytestmark = pytest.mark.kernel

MIX = generate("mix", 300, seed=1)


@examples(100)
@given(st.data(), st.sampled_from(STEP_TIMES))
def test_no_engine_is_busy_for_less(data, step_time):
    """The least busy time is below that of any run."""
    instance = data.draw(instances(arrivals=False))
    rules = data.draw(rules_for(instance))
    log = simulate(instance, "fcfs", rules, step_time=step_time)
    busy = (log.steps.end_s - log.steps.begin_s).sum()
    trace = Trace(instance.prefill, instance.decode)
    assert busy >= busy_s(trace, rules, step_time) - 1e-9


def test_unit_steps_by_hand():
    """The sum of volumes over budget and time."""
    trace = Trace([2, 4], [3, 1], [0, 5])
    # 2 + 3 + 4 and 4 tokens held: 13 token steps of 10 tokens.
    assert offered_load(trace, EngineModel.vllm(10), UNIT_STEPS) == pytest.approx(
        1.3 / 5
    )
    # With the new token counted as well: 4 more.
    papers = EngineModel.vllm(10, counts_new_token=True)
    assert offered_load(trace, papers, UNIT_STEPS) == pytest.approx(1.7 / 5)
    # Two tokens a step, 8 in all; or one request a step, 4 steps.
    assert busy_s(trace, EngineModel.vllm(10, max_batched_tokens=2), UNIT_STEPS) == 4
    assert busy_s(trace, EngineModel.vllm(10, max_num_seqs=1), UNIT_STEPS) == 4
    assert offered_load(Trace([2], [3]), EngineModel.vllm(10), UNIT_STEPS) == np.inf


@pytest.mark.parametrize("step_time", [UNIT_STEPS, PRESETS["a100-llama-3-8b"]])
@pytest.mark.parametrize("load", [0.5, 2.0])
def test_rate_and_load_are_inverse(step_time, load):
    """Replayed at the rate of a load, a trace has that load."""
    rules = EngineModel.vllm(16492, max_batched_tokens=2048)
    rate = rate_of_load(load, MIX, rules, step_time)
    trace = arrive(arrive(MIX, "poisson", rate=1.0), "trace", rate=rate)
    assert offered_load(trace, rules, step_time) == pytest.approx(load)


def test_queues_grow_above_one_only():
    """At low load few wait; at four times capacity queues grow and nothing fails."""
    rules = EngineModel.vllm(16492)
    longest = []
    for load in (0.4, 4.0):
        rate = rate_of_load(load, MIX, rules, UNIT_STEPS)
        log = simulate(arrive(MIX, "poisson", rate=rate), "svf", rules)
        longest.append(int(log.steps.num_waiting.max()))
    assert longest[0] < 10
    assert longest[1] > 30


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_loads(load):
    """A load is a number above 0."""
    with pytest.raises(ValueError, match="load = "):
        rate_of_load(load, MIX, EngineModel.vllm(16492), UNIT_STEPS)
