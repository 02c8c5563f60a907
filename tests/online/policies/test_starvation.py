"""Bounded starvation: an overdue request goes first, runs on, and wakes the engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from online.policy import make_policy
from online.starvation import BoundedWait
from online.state import Decision
from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import POLICY_OPTIONS, cases, run
from tests.strategies import examples

pytestmark = pytest.mark.kernel


class HoldsBack:
    """Starts nothing for a long time."""

    def decide(self, state):
        return Decision(wake_s=1000.0)


def test_a_policy_that_holds_back_is_overruled_in_time():
    """The engine is asked again when the first is overdue, not when the policy says."""
    done = run(
        Instance([3], [2], 10), EngineModel.vllm(10), BoundedWait(HoldsBack(), 7.0)
    )
    assert done.log.start_s.tolist() == [7.0]


@given(cases(max_requests=9, max_length=9))
@examples(60)
def test_without_patience_all_are_served_as_they_come(case):
    """A maximum of 0 makes any policy first come, first served."""
    instance, rules = case
    fcfs = run(instance, rules, "fcfs", max_wait_s=0.0)
    for name in ("svf-1bit", "las", "pars"):
        assert run(instance, rules, name, max_wait_s=0.0).fates() == fcfs.fates()
    assert fcfs.evictions == 0


class Referee:
    """Checks that requests that were overdue when they started are not evicted."""

    def __init__(self, policy, max_wait_s):
        self.policy = policy
        self.max_wait_s = max_wait_s
        self.due = {}
        self.protected = {}
        self.last_s = -1.0

    def decide(self, state):
        for i in state.left:
            due = self.due.pop(i)
            if due <= self.last_s:
                self.protected[i] = due
        running = set(state.running.tolist())
        for i in state.joined:
            ran = [due for j, due in self.protected.items() if j != i]
            due = self.protected.pop(i, None)
            # The engine had to, for one that was overdue before it.
            assert due is None or min(ran) <= due
            self.due[i] = state.now_s + self.max_wait_s if due is None else due
        for i in set(self.protected) - running:
            del self.protected[i]
        self.last_s = state.now_s
        decision = self.policy.decide(state)
        assert not set(decision.evict) & set(self.protected)
        first_due = min(self.due.values(), default=float("inf"))
        if first_due <= state.now_s:
            assert not decision.evict
            assert all(self.due[i] <= state.now_s for i in decision.start)
        return decision


@pytest.mark.parametrize(("name", "options"), POLICY_OPTIONS)
@pytest.mark.parametrize("gap", [0.5, 1.0])
def test_an_overdue_request_runs_to_its_end(name, options, gap):
    """A policy that would evict it does not get to; the engine goes by arrival.

    In the stream with gaps of 0.5 every request is overdue in the end.
    """
    n = 120
    prefill, decode = np.full(n, 6), np.full(n, 4)
    prefill[0], decode[0] = 25, 30
    instance = Instance(prefill, decode, 60, arrival=(np.arange(n) * gap).astype(int))
    policy = make_policy(name, max_wait_s=20.0, **options)
    run(instance, EngineModel.vllm(60), Referee(policy, 20.0))


@pytest.mark.parametrize("max_wait_s", [-1.0, float("nan"), float("inf")])
def test_a_maximum_that_makes_no_sense_is_refused(max_wait_s):
    with pytest.raises(ValueError, match="max_wait_s = "):
        make_policy("svf", max_wait_s=max_wait_s)


def test_thousands_that_wait_are_not_sorted_anew():
    """Preempted requests came before arrivals of the same step: 4 ms for 10,000."""
    policy = BoundedWait(HoldsBack(), 7.0)
    policy._insert({0: 1.0})
    due_s = policy._due_s
    policy._insert({2: 9.0, 1: 5.0})
    assert policy._due_s is due_s
    assert list(due_s) == [0, 1, 2]
    policy._insert({3: 3.0})  # comes back, and was due before others
    assert list(policy._due_s) == [0, 3, 1, 2]
