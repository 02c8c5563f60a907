"""UniBoost: its two limits, its boost, gamma from the tail, and MemGuard's promise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.parts.boost import AdaptiveGamma, boost, tail_slope
from online.policies.parts.geometric import level, threshold
from online.policies.uniboost import Boosted, FixedGamma
from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import cases, run
from tests.strategies import examples

pytestmark = pytest.mark.kernel


@given(cases(max_requests=9, max_length=10), st.sampled_from([math.inf, 1e12]))
@examples(60)
def test_an_infinite_gamma_is_first_come_first_served(case, gamma):
    """Every start, completion and preemption is the same, where the engine looks at
    whole prompts when it admits, as a preemptive policy does.
    """
    instance, rules = case
    rules = replace(rules, reserve_prompt=True, long_prefill_token_threshold=0)
    fcfs = run(instance, rules, "fcfs")
    boosted = run(instance, rules, "uniboost-base", gamma=gamma)
    assert boosted.fates() == fcfs.fates()
    assert boosted.evictions == 0


@given(cases(max_requests=9, max_length=10))
@examples(60)
def test_a_tiny_gamma_is_least_attained_service(case):
    """Every start, completion and preemption is the same, if arrivals, which tell
    requests with equal service apart in the score, do not evict any.
    """
    instance, rules = case
    las = run(instance, rules, "las")
    boosted = run(instance, rules, "uniboost-base", gamma=1e-9, hysteresis=100.0)
    assert boosted.fates() == las.fates()


def test_the_boost_falls_with_work_and_is_finite():
    """`b_gamma` is decreasing; -ln(w) / gamma for little work, 0 for much."""
    work = np.array([0.0, 1e-6, 0.1, 1.0, 50.0])
    b = boost(work, 1.0)
    assert np.all(np.isfinite(b))
    assert np.all(np.diff(b) < 0)
    assert b[1] == pytest.approx(-math.log(1e-6), rel=1e-6)
    assert b[-1] == pytest.approx(0, abs=1e-20)
    assert boost(work, math.inf).tolist() == [0.0] * 5


def test_the_tail_of_an_exponential_has_its_rate():
    """Of 20,000 exponential response times the slope is the rate."""
    times = np.random.default_rng(1).exponential(4.0, 20_000)
    assert tail_slope(times) == pytest.approx(0.25, rel=0.15)
    assert tail_slope([3.0] * 1000) is None
    assert tail_slope([]) is None


def test_gamma_is_fitted_again_as_requests_finish():
    """Infinite at first, then the slope of what was seen, then of what came since."""
    rng = np.random.default_rng(2)
    gamma = AdaptiveGamma(1000)
    assert not gamma.observe(rng.exponential(1.0, 99))
    assert math.isinf(gamma.value)
    assert gamma.observe(rng.exponential(1.0, 5000))
    assert gamma.value == pytest.approx(1.0, rel=0.5)
    assert gamma.observe(rng.exponential(100.0, 1000))
    assert gamma.value == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize("name", ["uniboost", "uniboost-base", "distboost"])
def test_an_adaptive_gamma_is_put_to_use(name):
    """After enough requests have finished it is finite, and the queue goes by it."""
    rng = np.random.default_rng(4)
    n = 600
    instance = Instance(
        rng.integers(1, 20, n), rng.integers(1, 30, n), 120,
        arrival=np.sort(rng.integers(0, 2000, n)),
    )  # fmt: skip
    done = run(instance, EngineModel.vllm(120), name, window=400)
    policy = done.watched.policy
    gamma = getattr(policy, "gamma", None) or policy.scorer.gamma
    assert 0 < gamma.value < math.inf


def test_thresholds_double():
    """0 below `k`, then `k, 2k, 4k, ...`, each reached exactly at its value."""
    work = np.array([0.0, 4.9, 5.0, 9.9, 10.0, 20.0, 79.9])
    assert level(work, 5.0).tolist() == [0, 0, 1, 1, 2, 3, 4]
    assert threshold(level(work, 5.0), 5.0).tolist() == [0, 0, 5, 5, 10, 20, 40]


@given(cases(max_requests=8, max_length=12), st.integers(1, 4))
@examples(60)
def test_memguard_evicts_logarithmically_often(case, first):
    """Each eviction comes after another threshold; however many requests press."""
    instance, rules = case
    done = run(instance, rules, "uniboost", gamma=1e-6, guard_tokens=first)
    total = instance.prefill + instance.decode
    evicted = np.zeros(instance.num_requests, dtype=int)
    for record in done.records:
        np.add.at(evicted, list(record.evicted), 1)
    if done.preemptions == 0:
        assert np.all(evicted <= np.floor(np.log2(total / first).clip(0)) + 1)


def test_memguard_stops_the_thrashing_of_its_base():
    """Many equal long requests: least attained service swaps without end."""
    instance = Instance([10] * 12, [60] * 12, 160)
    base = run(instance, EngineModel.vllm(160), "uniboost-base", gamma=1e-6)
    guarded = run(
        instance, EngineModel.vllm(160), "uniboost", gamma=1e-6, guard_tokens=8
    )
    assert guarded.evictions < base.evictions / 5
    assert guarded.log.completion_s.mean() < base.log.completion_s.mean()


def test_a_gamma_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"gamma = 0.0 but must be above 0"):
        Boosted(FixedGamma(0.0), None)
