"""No request is passed over for long, whatever the hints of others are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.passing import EVERY, BoundedPassing
from online.policy import make_policy
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.traces import Trace
from tests.online.policies.engine_runs import POLICY_OPTIONS, cases, run
from tests.strategies import examples

pytestmark = pytest.mark.kernel


def stream_of_liars():
    """One honest long request, then short ones without end that fill the cache."""
    n = 400
    prefill = np.append(60, np.full(n, 10))
    decode = np.append(30, np.full(n, 10))
    arrival_s = np.append(1.0, np.arange(n) * 1.0)
    return Trace(prefill, decode, arrival_s)


def test_a_long_request_among_many_short_ones_starts():
    """Without the floor it starts when the stream ends."""
    rules = EngineModel.vllm(100)
    without = simulate(stream_of_liars(), "svf", rules)
    assert without.start_step[0] > 400
    for factor in (0.5, 2.0):
        log = simulate(stream_of_liars(), "svf", rules, options={"max_passed": factor})
        assert log.start_step[0] < 4 * (1 + factor) * EVERY


class Referee:
    """Adds up services step by step, and counts how often each was passed over."""

    def __init__(self, log, trace):
        self.start, self.end = log.start_step, log.completion_step
        self.s, self.arrival = trace.prefill, trace.arrival_s

    def service(self, i, begin, end):
        """Tokens of KV times steps of request `i` in the steps (begin, end]."""
        steps = np.arange(max(begin, self.start[i]), min(end, self.end[i]))
        return float((self.s[i] + steps - self.start[i]).sum())


@pytest.mark.parametrize("policy", ["svf", "mc-sf"])
@pytest.mark.parametrize("factor", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_waits_while_later_ones_get_more_than_their_part(
    policy, factor, seed
):
    """In a run without preemptions, from the log alone, up to what runs at a look."""
    rng = np.random.default_rng(seed)
    n, budget = 150, 600
    long = rng.random(n) < 0.1
    trace = Trace(
        np.where(long, 150, rng.integers(1, 20, n)),
        np.where(long, 60, rng.integers(5, 40, n)),
        np.cumsum(rng.exponential(1.2, n)),
    )
    rules = EngineModel.vllm(budget, watermark=0.4)
    log = simulate(trace, policy, rules, options={"max_passed": factor})
    assert not log.preemptions.any()
    referee = Referee(log, trace)
    # What ran when it became overdue, and overdue ones before it, still come first.
    longest = int((log.completion_step - log.start_step).max())
    slack = budget * (longest + 2 * EVERY)
    for i in range(n):
        since, until = int(trace.arrival_s[i]), int(log.start_step[i])
        got = {j: referee.service(j, since, until) for j in range(n) if j != i}
        ahead = sum(got[j] for j in got if trace.arrival_s[j] < trace.arrival_s[i])
        passed = sum(got.values()) - ahead
        assert passed <= factor * ahead + slack * (1 + factor)


@pytest.mark.parametrize("name", ["srpt", "svf", "hrrn"])
def test_honest_clients_are_near_fcfs_at_worst(name):
    """A liar with most of the work, who says 1: the floor alone, hints believed."""
    rng = np.random.default_rng(4)
    n = 400
    is_liar = rng.random(n) < 0.5
    decode = np.where(is_liar, 400, rng.integers(20, 200, n))
    trace = Trace(np.full(n, 20), decode, np.cumsum(rng.exponential(9.0, n)))

    def honest_mean(policy, **options):
        log = simulate(
            trace, policy, EngineModel.vllm(4000),
            predicted=np.where(is_liar, 1, decode), options=options,
        )  # fmt: skip
        return float((log.completion_s - trace.arrival_s)[~is_liar].mean())

    fcfs = honest_mean("fcfs")
    assert honest_mean(name, max_passed=0.5) < 1.5 * fcfs


@pytest.mark.parametrize(("name", "options"), POLICY_OPTIONS[::4])
@given(case=cases(max_requests=8, max_length=14), factor=st.sampled_from([0.0, 1.0]))
@examples(10)
def test_every_policy_runs_to_the_end_with_it(name, options, case, factor):
    instance, rules = case
    run(instance, rules, make_policy(name, max_passed=factor, **options))


def test_a_factor_is_a_number():
    for factor in (-1.0, float("inf"), "often", True):
        with pytest.raises(ValueError, match=r"max_passed = .* must be a number"):
            BoundedPassing(make_policy("svf"), factor)
