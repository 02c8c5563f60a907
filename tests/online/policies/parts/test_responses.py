"""How long requests took, from the snapshots: as the log has it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.parts.responses import response_times
from online.policy import make_policy
from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.online.policies.engine_runs import cases, run
from tests.strategies import examples

pytestmark = pytest.mark.kernel


class Listening:
    """Lets another policy decide, and keeps the response times."""

    def __init__(self, name):
        self.policy = make_policy(name)
        self.seen = []

    def decide(self, state):
        self.seen += response_times(state)
        return self.policy.decide(state)


@given(cases(max_requests=8, max_length=8), st.sampled_from(["fcfs", "las", "srpt"]))
@examples(60)
def test_they_are_those_of_the_log(case, name):
    """Each is the response time of another request, to the last digit."""
    instance, rules = case
    policy = Listening(name)
    log = run(instance, rules, policy).log
    true = Counter((log.completion_s - log.arrival_s).tolist())
    assert not Counter(policy.seen) - true


def test_all_but_the_last():
    """The run ends before they do."""
    policy = Listening("fcfs")
    run(Instance([5, 5, 5], [3, 7, 9], 100), EngineModel.vllm(100), policy)
    assert policy.seen == [3.0, 7.0]


def test_an_idle_engine_takes_no_time():
    """The gap until the next request came was taken for service."""
    lonely = Instance([5, 5, 5], [3, 3, 3], 100, [0, 1000, 1001])
    policy = Listening("fcfs")
    run(lonely, EngineModel.vllm(100), policy)
    assert policy.seen == [3.0]  # of the second, while the third runs
