"""No run is better than what its bound allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.hindsight import hindsight_bound
from online.metrics import measure, ttlt_s
from online.simulator import simulate
from sortedf import Instance, bound
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.step_time import PRESETS, UNIT_STEPS, StepTime
from sortedf.traces import Trace
from tests.online.runs import restless_runs
from tests.online.strategies import rules_for
from tests.strategies import examples, instances

pytestmark = pytest.mark.kernel


@examples(200)
@given(restless_runs(), st.sampled_from(["fluid", "dual", "auto"]))
def test_no_run_beats_its_bound(run, method):
    """Preempted, chunked, in blocks, with arrivals between steps: it always holds."""
    log, rules, step_time = run
    found = hindsight_bound(log, rules, step_time, method)
    assert found.total_s is not None
    assert ttlt_s(log).sum() >= found.total_s - 1e-6
    if not step_time.is_constant:
        assert found.method == "seconds"
    elif len(log.pauses):
        assert found.method in ("fluid", "seconds")


@examples(150)
@given(st.data(), st.sampled_from(["fcfs", "svf"]), st.sampled_from(["fluid", "dual"]))
def test_good_runs_of_few_requests_do_not_beat_it_either(data, policy, method):
    """Where a bound is tight: few requests, prompts of one token among them."""
    instance = data.draw(instances(max_requests=3, max_length=4))
    rules = data.draw(rules_for(instance))
    log = simulate(instance, policy, rules)
    found = hindsight_bound(log, rules, UNIT_STEPS, method)
    assert found.total_s is not None
    assert ttlt_s(log).sum() >= found.total_s


def test_it_is_the_offline_bound_in_the_papers_model():
    """Where the rules are the papers', nothing is lost in translation."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10, [0, 1, 1])
    rules = instance.engine
    log = simulate(instance, "svf", rules)
    found = hindsight_bound(log, rules, UNIT_STEPS)
    assert found.total_s == bound(instance, "fluid").value


def test_a_backlog_is_close_to_it():
    """A useful bound, not only a valid one."""
    trace = generate("mix", 400, seed=1)
    rules = EngineModel.vllm(16492)
    found = measure(simulate(trace, "svf", rules), rules, UNIT_STEPS, bound="fluid")
    assert found.gap is not None
    assert 0 <= found.gap < 0.25


def test_seconds_per_step_scale_it():
    """Steps of a tenth of a second give a tenth of the bound."""
    trace = generate("chat", 50, seed=1)
    rules = EngineModel.vllm(2048)
    whole, tenth = (
        hindsight_bound(simulate(trace, "svf", rules, step_time=t), rules, t)
        for t in (UNIT_STEPS, StepTime(0.1))
    )
    assert whole.total_s is not None
    assert tenth.total_s == pytest.approx(whole.total_s / 10)


def test_places_count_where_they_bind():
    """Equal requests in a few places: the bound knows that the others must wait."""
    trace = Trace([1] * 300, [20] * 300)
    rules = EngineModel.vllm(10**6, max_num_seqs=10)
    log = simulate(trace, "fcfs", rules)
    found = measure(log, rules, UNIT_STEPS, bound="auto")
    assert found.bound_method == "seconds"
    assert found.gap is not None
    assert found.gap < 0.05


def test_a_run_in_seconds_has_a_gap():
    """Steps of a real model, prompts in chunks."""
    trace = generate("mix", 400, seed=1)
    rules = EngineModel.vllm(60_000, 16, max_num_seqs=64, max_batched_tokens=2048)
    step_time = PRESETS["a100-llama-3-8b"]
    log = simulate(trace, "svf", rules, step_time=step_time)
    found = measure(log, rules, step_time, bound="fluid")
    assert found.bound_method == "seconds"
    assert found.gap is not None
    assert 0 <= found.gap < 0.7
