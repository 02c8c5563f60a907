"""A decision stands exactly as long as it may, by all that happened since it."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from online.last_decision import LastDecision
from online.requests import RequestTable
from online.state import Decision
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS

EVENTS = ("joined", "left", "ended", "changed")
NOTHING_HAPPENED = dict.fromkeys(EVENTS, 0)
QUIET = {"all_decoded": True, "all_made": True, "as_decided": True}


class Says:
    """A policy that returns one decision and keeps the states that it saw."""

    def __init__(self, decision=None):
        self.decision = decision
        self.states = []

    def decide(self, state):
        self.states.append(state)
        return self.decision


def new_last():
    return LastDecision(EngineModel.vllm(100), UNIT_STEPS)


def ask(last, policy, step=0, *, running=2, free=10):
    ids = np.arange(running)
    return last.ask(policy, step, float(step), ids, RequestTable().view, free, {}, None)


steps = st.fixed_dictionaries(
    {
        "events": st.sampled_from(
            [NOTHING_HAPPENED] * 3 + [{**NOTHING_HAPPENED, e: 1} for e in EVENTS]
        ),
        "all_decoded": st.booleans(),
        "all_made": st.sampled_from([True, True, True, False]),
        "as_decided": st.sampled_from([True, True, True, False]),
        "num_running": st.sampled_from([2, 2, 2, 0]),
        "free": st.integers(0, 3),
        "decision": st.builds(
            Decision,
            start=st.sampled_from([(), (), (7,)]),
            quiet_until=st.sampled_from([0, 3, 6, math.inf]),
            quiet_until_s=st.sampled_from([2.0, 5.5, math.inf]),
        ),
    }
)


@given(st.lists(steps, max_size=8))
def test_it_stands_by_all_that_happened_since(changes):
    """The slow twin looks through all steps since the decision."""
    last, policy = new_last(), Says()
    since: list[dict] = []
    decision, began_decoding, was_free = Decision(), False, math.inf
    for step, now in enumerate(changes):
        for name, count in now["events"].items():
            getattr(last, name).extend([1] * count)
        since.append(dict(now["events"]))
        stands = (
            began_decoding
            and step < decision.quiet_until
            and step < decision.quiet_until_s
            and sum(one["left"] for one in since) == len(decision.start)
            and not any(one[e] for one in since for e in EVENTS if e != "left")
            and all(one["all_made"] and one["as_decided"] for one in since[:-1])
            and now["num_running"] > 0
            and now["free"] <= was_free
        )
        running, free, clock = now["num_running"], now["free"], float(step)
        assert last.stands(step, lambda t=clock: t, running, free) == stands
        if not stands:
            before = changes[step - 1] if step else None
            policy.decision = decision = now["decision"]
            assert ask(last, policy, step, running=running, free=free) == decision
            quiet = (
                before is not None
                and before["all_decoded"]
                and not any(one[e] for one in since for e in EVENTS)
                and free <= was_free
            )
            assert policy.states[-1].quiet == quiet
            began_decoding = running == 0 or (before is not None and before["all_made"])
            since = []
        was_free = free
        happened = {name: now[name] for name in QUIET}
        last.after_step(**happened)
        if since:
            since[-1].update(happened)
        else:
            since.append({**NOTHING_HAPPENED, **happened})


def test_the_policy_gets_each_event_once_and_may_keep_the_list():
    last, policy = new_last(), Says(Decision())
    last.joined.append(3)
    last.ended.append(5)
    ask(last, policy)
    last.joined.append(4)
    ask(last, policy)
    first, second = policy.states
    assert (first.joined, first.ended) == ([3], [5])
    assert (second.joined, second.ended) == ([4], [])


def test_the_clock_is_read_only_if_it_matters():
    last = new_last()
    ask(last, Says(Decision(quiet_until=math.inf)), running=0)
    last.after_step(**QUIET)
    assert last.stands(1, lambda: 1 / 0, 2, 10)


def test_an_event_that_nobody_foresaw_ends_it():
    last = new_last()
    ask(last, Says(Decision(quiet_until=math.inf)), running=0)
    last.after_step(**QUIET)
    last.disturb()
    assert not last.all_decode
    assert not last.stands(1, float, 2, 10)


def test_it_stands_before_its_time_and_while_no_block_comes_free():
    """Blocks may be freed late, after a step that had fewer than the decision."""
    last = new_last()
    ask(last, Says(Decision(quiet_until=9, quiet_until_s=4.0)), running=0, free=10)
    last.after_step(**QUIET)
    assert last.stands(1, lambda: 3.9, 2, 10)
    assert not last.stands(1, lambda: 4.0, 2, 10)
    assert last.stands(1, float, 2, 6)
    assert not last.stands(1, float, 2, 7)
