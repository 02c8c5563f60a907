"""What holds for every policy: all finish, nothing overflows, runs repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import POLICY_OPTIONS, cases, run
from tests.strategies import examples

pytestmark = pytest.mark.kernel

every_policy = pytest.mark.parametrize(("name", "options"), POLICY_OPTIONS)


@every_policy
@given(cases(max_requests=8, max_length=9), st.sampled_from([0.1, 1.0, 10.0]))
@examples(15)
def test_everything_finishes_and_nothing_overflows(name, options, case, off):
    """Whatever the rules, and with predictions off by ten times either way."""
    instance, rules = case
    predicted = np.maximum(instance.decode * off, 1).astype(int).tolist()
    score = [float(o) if o % 3 else float("nan") for o in instance.decode.tolist()]
    first = run(instance, rules, name, predicted=predicted, score=score, **options)
    again = run(instance, rules, name, predicted=predicted, score=score, **options)
    assert first.fates() == again.fates()


@every_policy
def test_all_policies_agree_when_there_is_no_load(name, options):
    """Requests that never meet leave nothing to decide."""
    instance = Instance([5, 9, 3, 7], [4, 2, 9, 1], 100, arrival=[0, 50, 60, 200])
    got = run(instance, EngineModel.vllm(100, block_size=4, max_batched_tokens=6), name,
              **options)  # fmt: skip
    base = run(
        instance, EngineModel.vllm(100, block_size=4, max_batched_tokens=6), "fcfs"
    )
    assert got.fates() == base.fates()


@every_policy
def test_identical_arrivals_and_lengths_are_served_by_id(name, options):
    """Where nothing tells requests apart, the lower id starts no later."""
    instance = Instance([4] * 9, [5] * 9, 30)
    starts = run(
        instance, EngineModel.vllm(30), name, **options
    ).log.start_step.tolist()
    assert starts == sorted(starts)


@every_policy
def test_overload_only_makes_the_queue_longer(name, options):
    """Far more work than the engine can do: it ends all the same, and none is lost."""
    rng = np.random.default_rng(3)
    n = 120
    instance = Instance(
        rng.integers(1, 30, n), rng.integers(1, 20, n), 60, arrival=np.arange(n) // 4
    )
    rules = EngineModel.vllm(60, block_size=4, max_num_seqs=5, max_batched_tokens=24)
    done = run(instance, rules, name, **options)
    assert max(r.num_waiting for r in done.records) > n / 2


@every_policy
@pytest.mark.parametrize("eviction", ["recompute", "restart"])
def test_a_cold_request_is_not_starved_by_a_hot_stream(name, options, eviction):
    """Short requests without end, one long and last in every rank: it waits the maximum
    and then until what runs is through, and is done in one go from there.
    """
    n, max_wait = 400, 50.0
    prefill, decode = np.full(n, 4), np.full(n, 6)
    prefill[7], decode[7] = 30, 20
    instance = Instance(prefill, decode, 50, arrival=np.arange(n) // 2)
    rules = EngineModel.vllm(50, block_size=2, max_num_seqs=6, eviction=eviction)
    score = decode.astype(float).tolist()
    done = run(
        instance, rules, name, score=score, max_wait_s=max_wait, **options
    )  # fmt: skip
    longest_run = 60  # one after another, with what was preempted done again
    cold = done.log.completion_s[7] - done.log.arrival_s[7]
    assert cold <= max_wait + longest_run + 20
