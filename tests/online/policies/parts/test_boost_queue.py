"""Boost by volume: the queue, what finished answers tell, and room by expectation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online import step_kernels as k
from online.policies.parts.answers import Answers
from online.policies.parts.boost_queue import CLOSE, BoostQueue
from online.policies.parts.expected_room import POINTS, ExpectedRoom
from online.policies.parts.work import engine_work_s
from online.policy import make_policy
from online.rules import StepRules
from sortedf import Instance
from sortedf.step_time import UNIT_STEPS, StepTime
from tests.online.policies.engine_runs import cases, run
from tests.online.policies.states import World
from tests.online.policies.test_queues import comings_and_goings, play

pytestmark = pytest.mark.kernel

DECODE = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
PREFILL = [7, 2, 9, 1, 6, 4, 30, 2, 8, 3, 1, 5, 60, 4, 2, 9, 7, 1, 2, 5]


def finished(lengths: list[list[int]]) -> Answers:
    """Answers that ended in one batch after the other."""
    answers = Answers()
    for batch in lengths:
        world = World([1] * len(batch), batch)
        world.table.ints[k.OUTPUT_TOKENS, : len(batch)] = batch
        answers.update(world.look(ended=list(range(len(batch)))))
    return answers


def test_work_is_a_share_of_full_steps_and_the_prompt():
    """By hand: a volume of 30 in a cache of 60 is half a step that reads all of it."""
    time = StepTime(1.0, prefill_token_s=0.01, running_s=0.5, kv_token_s=0.1)
    rules = StepRules(63, block_size=4)
    work = engine_work_s(np.array([20]), np.array([30.0]), rules, time)
    assert work.tolist() == [pytest.approx(0.5 * (1 + 0.1 * 60) + 0.2)]


@given(st.lists(comings_and_goings, max_size=6), st.sampled_from([0.1, 1.0, 20.0]))
def test_the_queue_equals_sorting_by_score(rounds, share):
    """Whatever came and went, with a gamma that fits the backlog."""
    world = World(PREFILL, DECODE, StepRules(100))
    queue = BoostQueue(share, None)

    def work(i: int) -> float:
        s, o = PREFILL[i], DECODE[i]
        return (s * o + o * (o + 1) / 2) / 100

    for moves in rounds:
        play(world, moves)
        queue.update(world.look())
        backlog = sum(work(i) for i in world.waiting)
        if backlog:
            assert 1 / CLOSE <= queue.gamma * share * backlog <= CLOSE
        else:
            assert queue.gamma == math.inf

        def score(i: int) -> tuple[float, float, int]:
            arrival = float(world.table.arrival_s[i])
            rest = -math.expm1(-queue.gamma * work(i))
            boosted = -math.log(rest) / queue.gamma if rest < 1 else 0.0
            return arrival - boosted, arrival, i

        head = queue.head(25)
        assert sorted(head) == sorted(world.waiting)
        scores = [score(i)[0] for i in head]
        assert all(a <= b + 1e-9 for a, b in pairwise(scores))


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), min_size=1),
    st.lists(st.integers(0, 50), min_size=1, max_size=4),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_answers_count_what_they_have_seen(batches, made, ahead):
    """Chances are shares of the longer ones; moments are those of the sample."""
    answers = finished(batches)
    seen = [length for batch in batches for length in batch][: answers.count]
    assert answers.count * 8 >= 7 * sum(map(len, batches)) - 8
    assert answers.mean == pytest.approx(np.mean(seen))
    assert answers.square == pytest.approx(np.mean(np.square(seen)))
    assert answers.longest == max(seen)
    chances = answers.go_on(np.array(made), np.array(ahead))
    for row, m in zip(chances.tolist(), made, strict=True):
        longer = [length for length in seen if length > m]
        for chance, a in zip(row, ahead, strict=True):
            if longer:
                wanted = sum(length > m + a for length in longer) / len(longer)
            else:
                wanted = float(a < max(m, 1))
            assert chance == pytest.approx(wanted)


@given(
    st.integers(0, 3),
    st.integers(1, 5),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from([1, 4]),
    st.integers(60, 200),
)
def test_expected_room_equals_adding_up(running, offered, margin, size, budget):
    """One request and one step at a time."""
    seen = [4, 4, 9, 17, 30]
    answers = finished([seen])
    world = World([10, 20, 5, 12, 3, 30, 8, 6], [40] * 8, StepRules(budget, size))
    world.arrive(range(8))
    world.start(range(running))
    world.table.ints[k.OUTPUT_TOKENS, :3] = [0, 5, 16]
    head = list(range(running, running + offered))
    got = ExpectedRoom(answers, margin).admit(world.look(), head)
    steps = np.unique(np.geomspace(1, 31, POINTS).astype(int)).tolist()

    def fits(ids: list[int]) -> bool:
        for h in steps:
            mean = variance = 0.0
            for i in ids:
                m = int(world.table.ints[k.OUTPUT_TOKENS, i])
                longer = [length for length in seen if length > m]
                p = sum(length > m + h - 1 for length in longer) / len(longer)
                held = int(world.table.ints[k.PREFILL, i]) + m + h + (size - 1) / 2
                mean += p * held
                variance += p * (1 - p) * held**2
            if mean + margin * math.sqrt(variance) > budget // size * size:
                return False
        return True

    now = list(range(running))
    wanted: list[int] = []
    for i in head:
        alone = not now and not wanted
        if not (alone or fits([*now, *wanted, i])):
            break
        wanted.append(i)
    assert got == wanted


@given(cases(max_requests=9, max_length=9))
@settings(max_examples=40)
def test_without_a_boost_it_is_first_come_first_served(case):
    """An infinite gamma leaves arrival alone."""
    instance, rules = case
    fcfs = run(instance, rules, "fcfs", admission="look-ahead")
    assert run(instance, rules, "svf-boost", gamma=math.inf).fates() == fcfs.fates()


@given(cases(max_requests=9, max_length=9), st.sampled_from([0.1, 10.0]))
@settings(max_examples=30)
def test_the_blind_one_does_not_look_at_what_is_told(case, off):
    """Predicted lengths make no difference to it."""
    instance, rules = case
    told = np.maximum(instance.decode * off, 1).astype(int).tolist()
    one = run(instance, rules, "svf-blind", predicted=told)
    assert one.fates() == run(instance, rules, "svf-blind").fates()


def test_it_learns_to_keep_room():
    """Answers of one length: after the first are done it preempts no more."""
    n = 60
    instance = Instance([10] * n, [90] * n, 1000, arrival=np.arange(n))
    rules = StepRules(1000, block_size=10)
    learned = run(instance, rules, "svf-blind").log
    fcfs = run(instance, rules, "fcfs").log
    assert learned.preemptions.sum() < fcfs.preemptions.sum() / 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("svf-boost", {"share": 0.0}),
        ("svf-boost", {"gamma": -1.0}),
        ("svf-blind", {"margin": -0.5}),
        ("svf-blind", {"share": math.inf}),
    ],
)
def test_options_out_of_range_are_refused(name, options):
    (option,) = options
    with pytest.raises(ValueError, match=f"{option} = "):
        make_policy(name, **options)


def test_the_clock_of_the_papers_is_enough():
    """In unit steps a prompt costs nothing beyond its volume."""
    work = engine_work_s(np.array([20]), np.array([50.0]), StepRules(100), UNIT_STEPS)
    assert work.tolist() == [0.5]
