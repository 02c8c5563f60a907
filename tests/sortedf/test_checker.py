"""The checker: agrees with a loop over every step, and names what is broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, Schedule, check
from sortedf.checker import MAX_VIOLATIONS
from tests import naive
from tests.strategies import engines, instances

pytestmark = pytest.mark.kernel


@given(instances(engine=engines()), st.data())
def test_agrees_with_a_loop_over_every_step(instance, data):
    """Feasible or not, the verdict, TEL and peak are those of the obvious loop."""
    n = instance.num_requests
    start = data.draw(st.lists(st.integers(0, 60), min_size=n, max_size=n))
    by_id = dict(enumerate(start))
    report = check(instance, start)
    assert report.feasible == naive.is_feasible(instance, by_id)
    steps = range(1, report.makespan + 1)
    assert report.peak_kv == max(naive.kv_used(instance, by_id, t) for t in steps)
    ends = [p + o for p, o in zip(start, instance.decode.tolist(), strict=True)]
    assert report.makespan == max(ends)
    assert report.tel == sum(ends) - sum(instance.arrival.tolist())


def broken_rules(instance, start):
    """Every broken rule: of KV where requests complete, of caps where some start."""
    engine = instance.engine
    n = instance.num_requests
    ends = [start[i] + int(instance.decode[i]) for i in range(n)]
    found = {
        ("arrival", i, start[i], int(instance.arrival[i]))
        for i in range(n)
        if start[i] < instance.arrival[i]
    }
    for step in range(1, max(ends) + 1):
        used = naive.kv_used(instance, dict(enumerate(start)), step)
        if step in ends and used > instance.usable_kv:
            found.add(("kv_budget", step, used, instance.usable_kv))
        running = [i for i in range(n) if start[i] < step <= ends[i]]
        new = [i for i in running if start[i] + 1 == step]
        tokens = sum(instance.prefill[new].tolist()) + len(running) - len(new)
        if new and len(running) > engine.seqs_cap:
            found.add(("max_num_seqs", step, len(running), engine.max_num_seqs))
        if new and tokens > engine.tokens_cap:
            found.add(("max_batched_tokens", step, tokens, engine.max_batched_tokens))
    return found


@given(instances(engine=engines()), st.data())
def test_names_every_broken_rule_with_its_numbers(instance, data):
    """Starts close together, so that steps are just full or just too full."""
    n = instance.num_requests
    start = data.draw(st.lists(st.integers(0, 15), min_size=n, max_size=n))
    report = check(instance, start)
    found = {(one.rule, one.where, one.value, one.limit) for one in report.violations}
    assert found == broken_rules(instance, start)
    assert len(found) == report.num_violations


@given(instances(engine=engines()), st.data())
def test_schedule_says_the_same_as_the_checker(instance, data):
    """The fast figures of a schedule are those of the slow checker."""
    n = instance.num_requests
    start = data.draw(st.lists(st.integers(0, 60), min_size=n, max_size=n))
    schedule = Schedule(instance, start)
    report = check(instance, schedule)
    assert (schedule.tel, schedule.peak_kv, schedule.makespan) == (
        report.tel,
        report.peak_kv,
        report.makespan,
    )
    time, used = schedule.kv_usage()
    by_id = dict(enumerate(start))
    events = sorted({*start, *schedule.completion.tolist()})
    assert time.tolist() == [t for t in events for _ in range(2)]
    expected = [naive.kv_used(instance, by_id, t + k) for t in events for k in (0, 1)]
    assert used.tolist() == expected


def test_one_token_too_many_is_found():
    """The budget is exact: 8 tokens in step 2, and 7 is one too few."""
    start = [0, 0]
    assert check(Instance([3, 1], [2, 4], 8), start).feasible
    report = check(Instance([3, 1], [2, 4], 7), start)
    assert not report.feasible
    assert str(report.violations[0]) == "step 2: 8 KV tokens held, kv_budget is 7"


def test_start_before_arrival_is_found():
    """No request runs before it arrives."""
    report = check(Instance([1], [1], 8, [5]), [4])
    message = "request 0 starts in step 4, before its arrival 5"
    assert [str(found) for found in report.violations] == [message]


def test_step_caps_are_found():
    """Three requests of three tokens run in step 1, where 2 and 8 are allowed."""
    engine = EngineModel(100, max_num_seqs=2, max_batched_tokens=8)
    report = check(Instance([3, 3, 3], [2, 2, 2], engine=engine), [0, 0, 0])
    assert [str(found) for found in report.violations] == [
        "step 1: 3 requests running, max_num_seqs is 2",
        "step 1: 9 tokens processed, max_batched_tokens is 8",
    ]


def test_only_the_first_violations_are_spelled_out():
    """A hopeless schedule of a long trace does not fill the memory."""
    n = 3 * MAX_VIOLATIONS
    report = check(Instance([1] * n, [1] * n, 8, [n] * n), [0] * n)
    assert len(report.violations) == MAX_VIOLATIONS == 100
    assert report.num_violations == n + 1  # each starts too early, and step 1 is full


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0], "start has 1 entries but the instance has 2 requests"),
        ([0, -1], r"start\[1\] = -1 but must be an integer from 0"),
        ([0, 0.5], r"start\[1\] = 0.5"),
        ([0, float("nan")], r"start\[1\] = nan"),
    ],
)
def test_what_is_no_schedule_is_refused(start, message):
    """Another length or another kind of number is an error, not a violation."""
    with pytest.raises(ValueError, match=message):
        check(Instance([1, 1], [1, 1], 8), start)


def test_empty_instance():
    """No requests, no latency."""
    report = check(Instance([], [], 8), [])
    assert (report.feasible, report.tel, report.peak_kv, report.makespan) == (
        True,
        0,
        0,
        0,
    )


def test_a_start_amid_quiet_steps_is_a_jump_of_the_usage_curve():
    """With one point per event, joining them would draw a slope from step 1 on."""
    instance = Instance(prefill=[1, 100], decode=[1000, 10], kv_budget=2000)
    time, used = Schedule(instance, [0, 500]).kv_usage()
    curve = list(zip(time.tolist(), used.tolist(), strict=True))
    assert curve[:4] == [(0, 0), (0, 2), (500, 501), (500, 502 + 101)]
