"""Figures of a run, against those computed token by token."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import metrics
from online.alone import alone_s
from online.arrivals import arrive
from online.simulator import simulate
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.step_time import UNIT_STEPS
from sortedf.traces import Trace
from tests.online.runs import STEP_TIMES, restless_runs, tokens_of
from tests.online.strategies import Restless, rules_for
from tests.strategies import examples, instances

pytestmark = pytest.mark.kernel


@examples(150)
@given(st.data(), st.integers(0, 2**32))
def test_times_between_tokens_are_those_of_every_token(data, seed):
    """Counts of tokens by step and the pauses are the whole distribution."""
    instance = data.draw(instances(max_requests=8))
    rules = data.draw(rules_for(instance).filter(lambda r: r.eviction == "recompute"))
    step_time = data.draw(st.sampled_from(STEP_TIMES))
    log, times = tokens_of(instance, rules, Restless(seed), step_time)
    between = np.concatenate([np.diff(seen) for seen in times.values()])
    found = metrics.tbt(log)
    assert found.num_observations == len(between)
    expanded = np.repeat(found.value, np.diff(found.num_below, prepend=0))
    assert expanded == pytest.approx(np.sort(between))
    first = [seen[0] for seen in times.values()]
    last = [seen[-1] for seen in times.values()]
    assert metrics.ttft_s(log) == pytest.approx(first - log.arrival_s)
    assert metrics.ttlt_s(log) == pytest.approx(last - log.arrival_s)
    waits = [0.0, *(log.start_s - log.arrival_s), *between]
    assert metrics.longest_wait_s(log) == pytest.approx(max(waits))


@pytest.mark.parametrize("seed", range(6))
def test_a_pause_is_one_time_between_tokens(seed):
    """From the token before an eviction to the one after it."""
    instance = Instance([2, 3, 1], [4, 2, 3], 9)
    log, times = tokens_of(instance, EngineModel.vllm(9), Restless(seed), STEP_TIMES[2])
    found = metrics.tbt(log)
    between = np.concatenate([np.diff(seen) for seen in times.values()])
    expanded = np.repeat(found.value, np.diff(found.num_below, prepend=0))
    assert expanded == pytest.approx(np.sort(between))


def test_the_hit_rate_counts_prompts_of_started_requests_and_what_is_recomputed():
    """The last request never started: its prompt was not looked for."""

    def log(prefill, recomputed, cached, start_step=(1, 4, 0)):
        columns = {"prefill": prefill, "recomputed_tokens": recomputed}
        columns |= {"cached_tokens": cached, "start_step": start_step}
        return SimpleNamespace(**{name: np.array(x) for name, x in columns.items()})

    assert metrics.hit_rate(log([10, 6, 9], [4, 0, 0], [3, 2, 0])) == 0.25
    assert metrics.hit_rate(log([1, 1, 7], [0, 0, 0], [1, 0, 0], (1, 0, 0))) == 1
    assert metrics.hit_rate(log([5, 5, 5], [0, 0, 0], [0, 0, 0], (0, 0, 0))) == 0


@examples(100)
@given(st.data(), st.sampled_from(STEP_TIMES))
def test_alone_is_how_long_a_lone_request_takes(data, step_time):
    """The closed form against a simulation, chunks and all."""
    instance = data.draw(instances(max_requests=1, arrivals=False))
    rules = data.draw(rules_for(instance))
    log = simulate(instance, "fcfs", rules, step_time=step_time)
    alone = alone_s(instance.prefill, instance.decode, rules, step_time)
    assert log.completion_s == pytest.approx(alone)


@examples(100)
@given(restless_runs())
def test_figures_make_sense(run):
    """Slowdown, fairness, order of the quantiles, and throughput, for any run."""
    log, rules, step_time = run
    found = metrics.measure(log, rules, step_time)
    slowdown = metrics.slowdown(log, rules, step_time)
    assert (slowdown >= 1 - 1e-9).all()
    assert 1 / len(slowdown) - 1e-9 <= found.fairness <= 1 + 1e-9
    assert found.ttlt is not None
    assert found.ttlt.p50 <= found.ttlt.p90 <= found.ttlt.p99 <= found.ttlt.max
    assert found.mean_latency == pytest.approx(found.ttlt.mean)
    assert found.throughput * found.makespan == pytest.approx(log.decode.sum())
    assert found.longest_wait <= found.ttlt.max + 1e-9
    assert 0 < found.mean_kv_use <= 1


def test_a_run_by_hand():
    """Two requests, one after the other in a cache for one."""
    log = simulate(Trace([2, 2], [3, 2], [0.0, 1.0]), "fcfs", EngineModel.vllm(4))
    found = metrics.measure(log, EngineModel.vllm(4), UNIT_STEPS)
    assert log.completion_s.tolist() == [3, 5]
    assert metrics.ttft_s(log).tolist() == [1, 3]
    assert metrics.ttlt_s(log).tolist() == [3, 4]
    assert metrics.tpot_s(log).tolist() == [1, 1]
    assert found.total_latency == 7
    assert found.makespan == 5
    assert found.throughput == 1
    assert found.longest_wait == 2
    assert metrics.slowdown(log, EngineModel.vllm(4), UNIT_STEPS).tolist() == [1, 2]
    assert found.fairness == pytest.approx(1.5**2 / (2 * 1.25))
    assert (found.preemptions, found.evictions, found.recomputed_tokens) == (0, 0, 0)


def one_after_another():
    """Three equal requests in a cache for one: slowdowns of 1, 2 and 3."""
    return simulate(Trace([2, 2, 2], [2, 2, 2]), "fcfs", EngineModel.vllm(3))


def test_fairness_is_that_of_speeds_and_not_of_slowdowns():
    """Two requests cannot tell the two apart, three can: 121/147 and not 6/7."""
    found = metrics.measure(one_after_another(), EngineModel.vllm(3), UNIT_STEPS)
    share = np.array([1, 1 / 2, 1 / 3])
    assert found.fairness == pytest.approx(share.sum() ** 2 / (3 * (share**2).sum()))
    assert found.fairness == pytest.approx(121 / 147)
    assert metrics.jain(np.array([0.0, 5.0, 0.0, 0.0])) == 0.25
    assert metrics.jain(np.zeros(0)) == 1


def test_the_gap_is_relative_to_the_bound():
    """Not to the total, and neither a ratio."""
    log = one_after_another()
    found = metrics.measure(log, EngineModel.vllm(3), UNIT_STEPS, bound="fluid")
    assert found.total_latency == 2 + 4 + 6
    assert found.lower_bound is not None
    assert 6 <= found.lower_bound < 12
    assert found.gap == pytest.approx(12 / found.lower_bound - 1)


@pytest.mark.parametrize(
    ("policy", "rules", "lost"),
    [
        ("fcfs", EngineModel.vllm(14), "preemptions"),  # answers outgrow the cache
        (
            "las",
            EngineModel.vllm(100, max_num_seqs=1),
            "evictions",
        ),  # the policy's choice
    ],
)
def test_evictions_and_preemptions_are_counted_apart(policy, rules, lost):
    log = simulate(Trace([3, 3, 3], [8, 8, 8], [0.0, 2.0, 4.0]), policy, rules)
    found = metrics.measure(log, rules, UNIT_STEPS)
    counts = {"preemptions": found.preemptions, "evictions": found.evictions}
    other = ({*counts} - {lost}).pop()
    assert counts == {lost: log.preemptions.sum(), other: 0}
    assert counts[lost] > 0


@examples(50)
@given(restless_runs())
def test_kv_use_is_an_average_over_time(run):
    """Step by step, from the first step's begin to the last one's end."""
    log, rules, step_time = run
    found = metrics.measure(log, rules, step_time)
    steps = log.steps
    rows = zip(steps.used_blocks, steps.begin_s, steps.end_s, strict=True)
    used = sum(float(n) * (end - begin) for n, begin, end in rows)
    whole = (steps.end_s[-1] - steps.begin_s[0]) * rules.num_blocks
    assert found.mean_kv_use == pytest.approx(used / whole)


def test_littles_law():
    """Requests there, summed over the steps, are the latencies, summed over requests.

    Arrivals are at whole steps, so that each request is seen in all its steps.
    """
    trace = arrive(generate("mix", 300, seed=3), "poisson", rate=0.1, seed=3)
    whole = Trace(trace.prefill, trace.decode, np.floor(trace.arrival_s))
    log = simulate(whole, "fcfs", EngineModel.vllm(8192))
    there = log.steps.num_running + log.steps.num_waiting
    assert log.steps.preemptions.sum() > 0
    assert there.sum() == metrics.ttlt_s(log).sum()


def test_one_token_answers_have_no_time_per_token():
    """TPOT and TBT are undefined there: nothing, not 0."""
    rules = EngineModel.vllm(10)
    log = simulate(Trace([3, 4], [1, 1]), "fcfs", rules)
    found = metrics.measure(log, rules, UNIT_STEPS)
    assert found.tpot is None
    assert found.tbt is None
    assert found.ttft == found.ttlt


def test_who_can_never_run_is_counted_apart():
    """Refused requests have no latency, and are counted."""
    rules = EngineModel.vllm(10)
    log = simulate(Trace([3, 40], [2, 1]), "fcfs", rules, drop_oversize=True)
    found = metrics.measure(log, rules, UNIT_STEPS)
    assert (found.requests, found.completed, found.refused) == (2, 1, 1)
    assert found.mean_latency == 2
    assert found.makespan == 2
    assert found.throughput == 1  # of the request that ran
    assert found.requests_per_s == 0.5
    assert found.tbt is not None
    assert found.tbt.max == found.longest_wait == 1
    assert found.as_dict()["ttlt"]["mean"] == 2


def test_an_empty_run_is_refused():
    """There is nothing to measure."""
    log = simulate(Instance([], [], 10), "fcfs", EngineModel.vllm(10))
    with pytest.raises(ValueError, match="nothing to measure"):
        metrics.measure(log, EngineModel.vllm(10), UNIT_STEPS)
