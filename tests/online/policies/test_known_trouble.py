"""Streams that are known to bring schedulers into trouble."""

from __future__ import annotations

import numpy as np
import pytest

from online.policy import make_policy
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import run

pytestmark = pytest.mark.kernel

PREEMPTIVE = ["srpt", "las", "mlfq", "uniboost-base", "uniboost"]


@pytest.mark.parametrize("name", ["srpt", "las", "mlfq"])
def test_a_burst_of_short_requests_after_a_long_one(name):
    """First come, first served makes all wait behind it; a policy that lets short ones
    pass does so, and sets the long one back by no more than their work.
    """
    instance = Instance([60, 95] + [5] * 20, [80, 40] + [3] * 20, 150,
                        arrival=[0, 1] + [20] * 20)  # fmt: skip
    fcfs = run(instance, EngineModel.vllm(150), "fcfs").log
    done = run(instance, EngineModel.vllm(150), name).log
    short = slice(2, None)
    assert fcfs.start_s[short].min() >= fcfs.start_s[1]
    assert done.completion_s[short].mean() < fcfs.completion_s[short].mean() / 2
    assert done.completion_s[1] <= fcfs.completion_s[1] + 20 * 8


def test_a_hot_stream_starves_a_cold_request_only_without_a_bound():
    """Smallest volume first leaves it to the very end; a maximum wait does not."""
    n = 300
    prefill, decode = np.full(n, 4), np.full(n, 6)
    prefill[5], decode[5] = 30, 15
    instance = Instance(prefill, decode, 48, arrival=np.arange(n) // 2)
    starved = run(instance, EngineModel.vllm(48), "svf").log
    bounded = run(instance, EngineModel.vllm(48), "svf", max_wait_s=30).log
    assert starved.start_s[5] > 0.8 * starved.start_s.max()
    assert bounded.start_s[5] <= instance.arrival[5] + 30 + 6
    aged = run(instance, EngineModel.vllm(48), "svf-aged", patience=2.0).log
    work = (30 * 15 + 15 * 16 / 2) / 48
    least = (4 * 6 + 6 * 7 / 2) / 48
    last_before = instance.arrival[5] + 2 * (work - least)
    ahead = (instance.arrival <= last_before).sum()
    assert aged.start_s[5] <= np.sort(aged.start_s)[ahead] + 15


def test_shortest_first_on_lengths_far_apart():
    """128, 512, 2048 and 8192 tokens: the short ones' slowdown falls, and the long
    ones' stays bounded.
    """
    rng = np.random.default_rng(7)
    n = 64
    decode = rng.permutation(np.repeat([128, 512, 2048, 8192], [32, 20, 8, 4]))
    arrival = np.cumsum(rng.exponential(40, n)).astype(int)
    instance = Instance(np.full(n, 50), decode, 10_000, arrival=arrival)
    rules = EngineModel.vllm(10_000, block_size=16)

    def slowdown(name: str) -> np.ndarray:
        log = run(instance, rules, name, max_steps=200_000).log
        return (log.completion_s - log.arrival_s) / decode

    fcfs, sjf = slowdown("fcfs"), slowdown("mc-sf")
    short, long = decode == 128, decode == 8192
    assert np.percentile(sjf[short], 99) < np.percentile(fcfs[short], 99) / 2
    assert sjf[long].max() < 10


def test_evicted_again_and_again_it_still_gets_on():
    """A long request under a stream of shorter ones; under MemGuard it goes rarely."""
    n = 60
    instance = Instance([20] + [10] * n, [60] + [12] * n, 82,
                        arrival=[0, *range(2, 5 * n, 5)])  # fmt: skip
    evictions = {}
    for name, options in [
        ("las", {}),
        ("uniboost", {"gamma": 1e-6, "guard_tokens": 8}),
    ]:
        done = run(instance, EngineModel.vllm(82), name, **options)
        evictions[name] = sum(0 in r.evicted for r in done.records)
    assert evictions["uniboost"] <= np.log2(80 / 8) + 1
    assert evictions["uniboost"] <= evictions["las"]


def test_of_two_equal_requests_the_preempted_one_comes_back_before_the_newer():
    """By arrival: the engine preempts the younger of two that run, and it starts again
    before a third that came after both. By attained service who never ran comes first.
    """
    instance = Instance([20] * 3, [10] * 3, 45, arrival=[0, 0, 1])
    first_three = {}
    for name in ("fcfs", "las"):
        done = run(instance, EngineModel.vllm(45), name)
        first_three[name] = [i for r in done.records for i in r.started][:3]
    assert first_three == {"fcfs": [0, 1, 1], "las": [0, 1, 2]}


@pytest.mark.parametrize("eviction", ["recompute", "restart"])
@pytest.mark.parametrize("name", PREEMPTIVE)
def test_two_that_only_fit_one_by_one_do_not_take_turns_for_ever(name, eviction):
    """Even where an eviction loses all that was made."""
    instance = Instance([8, 8], [12, 12], 20)
    options = {"gamma": 1e-6} if name.startswith("uniboost") else {}
    run(
        instance,
        EngineModel.vllm(20, eviction=eviction),
        name,
        max_steps=500,
        **options,
    )


def test_first_chunks_where_whole_prompts_are_not_reserved():
    """Twelve tokens fit beside the first prompt, and so the second one starts, too."""
    rules = EngineModel.vllm(40, max_batched_tokens=16, reserve_prompt=False)
    log = run(Instance([15, 30], [9, 2], 40), rules, "fcfs").log
    assert log.start_step.tolist() == [1, 1]


def test_what_becomes_known_of_a_running_request_counts_at_once():
    """It will end sooner than was said, so that another can start now."""
    table = RequestTable.of_arrays([10, 30], [30, 20], [0.0, 0.0], predicted=[60, 20])
    policy = make_policy("svf")
    engine = StepEngine(table, EngineModel.vllm(77), policy)
    engine.add(0)
    engine.step(0.0)
    engine.add(1)
    assert not engine.step(1.0).started
    engine.update_hint(0, predicted=20)
    assert engine.step(2.0).started == [1]
