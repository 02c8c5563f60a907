"""A real vLLM engine and the step engine agree: every request, every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.common.data import scaled_mix
from online.driver import drive
from online.executor.execution import execute_plan, plan_run
from online.policy import make_policy
from online.requests import RequestTable
from online.simulator import simulate
from online.step_engine import StepEngine
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import POLICY_OPTIONS

KV_BUDGET = 4096
WIDE = {"max_batched_tokens": 8192, "max_num_seqs": 128}
NARROW = {"max_batched_tokens": 96, "max_num_seqs": 96}
FEW = {"max_batched_tokens": 8192, "max_num_seqs": 9}
COURSES = [
    ("policy", "fcfs"),
    ("policy", "svf"),
    ("list", "sorted-f"),
    ("plan", "svf"),
]


def same_logs(real, twin, what):
    """Everything that two logs hold is the same."""
    for name in ("start_step", "first_token_step", "completion_step", "preemptions",
                 "recomputed_tokens", "pauses"):  # fmt: skip
        np.testing.assert_array_equal(getattr(real, name), getattr(twin, name), what)
    for name in real.steps.__slots__:
        np.testing.assert_array_equal(
            getattr(real.steps, name), getattr(twin.steps, name), f"{what}: {name}"
        )


def agree(real_engine, instance, method, mode, **settings):
    """Run both engines and compare everything that the logs hold."""
    rules = EngineModel.vllm(KV_BUDGET, block_size=32, **settings)
    plan = plan_run(instance, rules, method, mode=mode)
    execution = execute_plan(
        plan,
        instance,
        lambda table, policy: real_engine(
            table, policy, kv_budget=KV_BUDGET, **settings
        ),
    )
    assert execution.rules == rules
    real, twin = execution.log, execution.predicted
    same_logs(real, twin, method)
    assert real.completed.all()
    return execution


@pytest.mark.parametrize(("mode", "method"), COURSES)
@pytest.mark.parametrize(
    ("settings", "seed"),
    [(WIDE, 1), (NARROW, 2), (FEW, 3)],
    ids=["wide", "narrow", "few"],
)
def test_every_request_finishes_in_the_step_that_was_said(
    real_engine, settings, seed, mode, method
):
    """300 requests of the 80/20 mix; large and small steps, and few at once."""
    instance = scaled_mix(300, seed)
    execution = agree(real_engine, instance, method, mode, **settings)
    if mode == "plan":
        assert execution.steps_matching == instance.num_requests
    if method == "fcfs" and settings is WIDE:
        assert execution.log.preemptions.any()
    if method != "fcfs":
        assert not execution.log.preemptions.any()


@pytest.mark.parametrize("method", ["fcfs", "svf"])
@pytest.mark.parametrize(
    ("settings", "threshold"), [(WIDE, 48), (NARROW, 20), (NARROW, 1)]
)
def test_the_limit_on_long_prompts_is_that_of_vllm(
    real_engine, method, settings, threshold
):
    """Prompts are cut to it, but not that of the last request, which is alone."""
    instance = scaled_mix(80, 7)
    last = instance.replace(
        prefill=[*instance.prefill, 300],
        decode=[*instance.decode, 5],
        arrival=[*instance.arrival, 20_000],
    )
    limit = {"long_prefill_token_threshold": threshold}
    cut = agree(real_engine, last, method, "policy", **settings, **limit)
    whole = simulate(last, method, replace(cut.rules, long_prefill_token_threshold=0))
    took = cut.log.first_token_step - cut.log.start_step
    assert took[-1] == 300 // (settings["max_batched_tokens"] + 1)
    assert (took[:-1] > (whole.first_token_step - whole.start_step)[:-1]).any()


@pytest.mark.parametrize("method", ["fcfs", "svf"])
def test_arrivals_agree_too(real_engine, method):
    """Requests that come while others run."""
    agree(real_engine, scaled_mix(150, 4, rate=0.7), method, "policy", **NARROW)


def test_every_policy_starts_and_evicts_as_in_the_simulator(real_engine):
    """All policies with their options, on requests that arrive, in one engine.

    They meet in a small cache: some policies evict, and under others requests are
    preempted.
    """
    mix = scaled_mix(20, 7, rate=2.4)
    instance = mix.replace(decode=np.maximum(mix.decode // 2, 1))
    score = np.random.default_rng(6).normal(size=20)
    engine = None
    evicted = preempted = 0
    for name, options in POLICY_OPTIONS:
        tables = [RequestTable.of_instance(instance, score=score) for _ in range(2)]
        policies = [make_policy(name, **options) for _ in range(2)]
        if engine is None:
            engine = real_engine(
                tables[0],
                policies[0],
                kv_budget=640,
                max_batched_tokens=64,
                max_model_len=384,
            )
        else:
            engine.use(tables[0], policies[0])
        real = drive(engine)
        twin = drive(StepEngine(tables[1], engine.rules, policies[1]))
        same_logs(real, twin, f"{name} {options}")
        assert real.completed.all()
        evicted += real.steps.evictions.any()
        preempted += real.steps.preemptions.any()
    assert evicted >= 5
    assert preempted >= 5


def test_stock_scheduler_is_fcfs(real_engine):
    """Our `fcfs` finishes every request in the step in which plain vLLM does."""
    from benchmarks.engine.parts.baseline import run_baseline
    from online.executor.vllm_engine import VllmSettings

    instance = scaled_mix(150, 5)
    execution = agree(real_engine, instance, "fcfs", "policy", **WIDE)
    settings = VllmSettings(
        EngineModel.vllm(KV_BUDGET, block_size=32, **WIDE), max_model_len=1024
    )
    baseline = run_baseline(instance, settings)
    assert baseline.completion_step.tolist() == execution.log.completion_step.tolist()
    assert baseline.preemptions == execution.log.preemptions.sum() > 0
