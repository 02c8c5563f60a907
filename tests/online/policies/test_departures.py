"""Who finished, from the snapshots: as the log has it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online.policies.departures import Departures
from online.policy import make_policy
from tests.online.policies.engine_runs import cases, run

pytestmark = pytest.mark.kernel


class Counting:
    """Lets another policy decide, and keeps the departures."""

    def __init__(self, name):
        self.policy = make_policy(name)
        self.departures = Departures()
        self.seen = []

    def decide(self, state):
        self.seen += self.departures.update(state)
        return self.policy.decide(state)


@given(cases(max_requests=8, max_length=8), st.sampled_from(["fcfs", "las", "srpt"]))
@settings(max_examples=60)
def test_departures_are_those_of_the_log(case, name):
    """Each with its answer and its response time; those of the last step are unseen."""
    instance, rules = case
    policy = Counting(name)
    done = run(instance, rules, policy)
    log = done.log
    last_look = done.watched.states[-1].step
    seen = log.completion_step <= last_look
    expected = sorted(
        zip(
            (log.completion_s - log.arrival_s)[seen].tolist(),
            log.decode[seen].tolist(),
            strict=True,
        )
    )
    # The clock may jump to the next arrival before the next look.
    assert sorted(d.made for d in policy.seen) == sorted(made for _, made in expected)
    responses = sorted(d.response_s for d in policy.seen)
    assert all(got >= true for got, (true, _) in zip(responses, expected, strict=True))
