"""Boost by volume: the queue, what finished answers tell, and room by expectation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import step_kernels as k
from online.answer_lengths import AnswerLengths
from online.policies.parts.boost_queue import CLOSE, Backlog, BoostQueue
from online.policies.parts.expected_room import POINTS, ExpectedRoom
from online.policies.parts.responses import ended_lengths
from online.policies.parts.work import engine_work_s
from online.policies.svf_blind import LOOK_EVERY, svf_blind
from online.policy import make_policy
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime
from tests.online.policies.engine_runs import cases, run
from tests.online.policies.states import World
from tests.online.policies.test_queues import comings_and_goings, play
from tests.online.policies.test_shared_prefixes import Cache, begun
from tests.strategies import examples

pytestmark = pytest.mark.kernel

DECODE = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
PREFILL = [7, 2, 9, 1, 6, 4, 30, 2, 8, 3, 1, 5, 60, 4, 2, 9, 7, 1, 2, 5]


def finished(lengths: list[list[int]]) -> AnswerLengths:
    """Answers that ended in one batch after the other."""
    answers = AnswerLengths(2**16)
    for batch in lengths:
        world = World([1] * len(batch), batch)
        world.table.ints[k.OUTPUT_TOKENS, : len(batch)] = batch
        answers.observe(ended_lengths(world.look(ended=list(range(len(batch))))))
    return answers


def test_work_is_a_share_of_full_steps_and_the_prompt():
    """By hand: a volume of 30 in a cache of 60 is half a step that reads all of it."""
    time = StepTime(1.0, prefill_token_s=0.01, running_s=0.5, kv_token_s=0.1)
    rules = EngineModel.vllm(63, block_size=4)
    work = engine_work_s(np.array([20]), np.array([30.0]), rules, time)
    assert work.tolist() == [pytest.approx(0.5 * (1 + 0.1 * 60) + 0.2)]


@given(st.lists(comings_and_goings, max_size=6), st.sampled_from([0.1, 1.0, 20.0]))
def test_the_queue_equals_sorting_by_score(rounds, share):
    """Whatever came and went, with a gamma that fits the backlog."""
    world = World(PREFILL, DECODE, EngineModel.vllm(100))
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


def test_a_backlog_counts_the_latest_work_of_each_request():
    """What a request was thought to need before is subtracted."""
    backlog = Backlog()
    backlog.replace(np.array([3, 5]), np.array([2.0, 8.0]))
    backlog.replace(np.array([3]), np.array([6.0]))
    assert backlog.total_s == 14
    backlog.drop(5)
    assert backlog.total_s == 6
    backlog.drop(5)
    assert backlog.total_s == 6
    backlog.drop(3)
    assert backlog.total_s == 0


def volume_s(s: int, o: int) -> float:
    """Seconds of a cache of 100 tokens in unit steps."""
    return (s * o + o * (o + 1) / 2) / 100


def test_a_new_prediction_is_taken_in():
    """The backlog and the order are those of the new lengths."""
    world = World([10, 10], [40, 30], EngineModel.vllm(100))
    queue = BoostQueue(1.0, None)
    world.arrive(range(2))
    queue.update(world.look())
    before = volume_s(10, 40) + volume_s(10, 30)
    assert queue.gamma == pytest.approx(1 / before)
    assert queue.head(2) == [1, 0]
    assert world.table.update_hint(1, 90, None)
    queue.update(world.look(changed=[1]))
    assert queue.gamma == pytest.approx(1 / (volume_s(10, 40) + volume_s(10, 90)))
    assert queue.head(2) == [0, 1]


def test_gamma_follows_a_backlog_that_changes_by_a_quarter():
    """By less, nothing is sorted again; either way it may go."""
    sizes = [(10, 40), (2, 15), (10, 20), (10, 40), (2, 15)]
    world = World(*map(list, zip(*sizes, strict=True)), EngineModel.vllm(100))
    queue = BoostQueue(1.0, None)
    volumes = [volume_s(*size) for size in sizes]  # 12.2, 1.5, 4.1, 12.2, 1.5

    def after(*, arrive=(), start=()) -> float:
        world.arrive(arrive)
        world.start(start)
        queue.update(world.look())
        return 1 / queue.gamma

    assert after(arrive=[0]) == pytest.approx(volumes[0])
    assert after(arrive=[1]) == pytest.approx(volumes[0])
    assert after(arrive=[2]) == pytest.approx(sum(volumes[:3]))
    assert after(arrive=[3]) == pytest.approx(sum(volumes[:4]))
    assert after(start=[1]) == pytest.approx(sum(volumes[:4]))
    assert after(start=[0]) == pytest.approx(volumes[2] + volumes[3])


def test_a_backlog_that_grows_changes_the_order_of_those_who_wait():
    """A large request is first while it waits alone, and then small ones overtake."""
    world = World([50, 10, 90, 90], [40, 1, 90, 90], EngineModel.vllm(100))
    queue = BoostQueue(0.01, None)
    world.arrive([0, 1])
    queue.update(world.look())
    assert queue.head(2) == [0, 1]
    world.arrive([2, 3])
    queue = BoostQueue(0.01, None)
    for ids in ([0, 1], [2, 3]):
        world.joined = list(ids)
        queue.update(world.look())
    assert queue.head(4)[:2] == [1, 0]


def test_expected_volumes_are_those_of_the_answers_seen():
    """`E[s o + o (o + 1) / 2]` over the lengths that were seen."""
    seen = [2, 4, 12]
    world = World([10, 30], [1, 1], EngineModel.vllm(100))
    queue = BoostQueue(1.0, None, finished([seen]))
    world.arrive(range(2))
    queue.update(world.look())
    expected = [np.mean([volume_s(s, o) for o in seen]) for s in (10, 30)]
    assert queue.gamma == pytest.approx(1 / sum(expected))


def test_requests_may_be_passed_over():
    """Without boosts it is a placement, with its window."""
    instance, rules = Instance([5, 6, 1], [3, 2, 1], 10), EngineModel.vllm(10)
    for backfill, start in ((0, [0, 3, 3]), (1, [0, 3, 0])):
        log = run(instance, rules, "svf-boost", gamma=math.inf, backfill=backfill).log
        assert (log.start_step - 1).tolist() == start


def test_the_blind_one_looks_again_after_a_while():
    """What runs is expected to hold less as time goes by, without any event."""
    world = World([30, 30], [40, 40], EngineModel.vllm(50))
    policy = svf_blind()
    world.arrive([0])
    world.start(policy.decide(world.look()).start)
    assert world.running == [0]
    world.table.ints[k.OUTPUT_TOKENS, 1] = 40
    world.arrive([1])
    decision = policy.decide(world.look(ended=[1]))
    assert list(decision.start) == []
    assert decision.quiet_until == LOOK_EVERY
    world.step = LOOK_EVERY - 1
    assert policy.decide(world.look(quiet=True)) is decision
    world.step = LOOK_EVERY
    again = policy.decide(world.look(quiet=True))
    assert again.quiet_until == 2 * LOOK_EVERY


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), min_size=1),
    st.lists(st.integers(0, 50), min_size=1, max_size=4),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_answers_count_what_they_have_seen(batches, output_tokens, ahead):
    """Chances are shares of the longer ones; moments are those of the sample."""
    answers = finished(batches)
    seen = [length for batch in batches for length in batch][: answers.count]
    assert answers.count * 8 >= 7 * sum(map(len, batches)) - 8
    assert answers.mean == pytest.approx(np.mean(seen))
    assert answers.square == pytest.approx(np.mean(np.square(seen)))
    assert answers.longest == max(seen)
    chances = answers.go_on(np.array(output_tokens), np.array(ahead))
    for row, m in zip(chances.tolist(), output_tokens, strict=True):
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
    world = World(
        [10, 20, 5, 12, 3, 30, 8, 6], [40] * 8, EngineModel.vllm(budget, size)
    )
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


@pytest.mark.parametrize(
    ("head", "output_tokens", "budget"),
    [
        (2, 0, 32),  # 3 * 15.5, less two blocks twice
        (3, 0, 36),  # 2 * 15.5 + 14.5 - 8 - 4: its last token is to be computed
        (3, 2, 28),  # 2 * 13.5 + 14.5 - 8 - 8: two more are, after an eviction
        (4, 0, 36),  # 2 * 15.5 + 11.5 - 8
    ],
)
def test_what_others_hold_is_not_expected_again(head, output_tokens, budget):
    """Answers of five tokens for certain, in blocks of four that are half full."""
    same = [1] * 8
    prompts = [[*same, 2], [*same, 3], [*same, 7], same, [4] * 5, [1] * 4 + [6] * 5]
    forest, _, _ = begun(Cache(4, prompts), {0: 0, 1: 0, 5: 0})
    world = World([len(prompt) for prompt in prompts], [5] * 6)
    world.arrive(range(6))
    world.start([0, 1])
    world.table.ints[k.OUTPUT_TOKENS, head] = output_tokens
    room = ExpectedRoom(finished([[5]]), 0.0)
    for tokens, admitted in ((budget, [head]), (budget - 4, [])):
        state = world.look(rules=EngineModel.vllm(tokens, 4), prefixes=forest)
        assert room.admit(state, [head]) == admitted


@given(cases(max_requests=9, max_length=9))
@examples(40)
def test_without_a_boost_it_is_first_come_first_served(case):
    """An infinite gamma leaves arrival alone."""
    instance, rules = case
    fcfs = run(instance, rules, "fcfs", admission="look-ahead")
    assert run(instance, rules, "svf-boost", gamma=math.inf).fates() == fcfs.fates()


@given(cases(max_requests=9, max_length=9), st.sampled_from([0.1, 10.0]))
@examples(30)
def test_the_blind_one_does_not_look_at_what_is_told(case, off):
    """Predicted lengths make no difference to it."""
    instance, rules = case
    predicted = np.maximum(instance.decode * off, 1).astype(int).tolist()
    one = run(instance, rules, "svf-blind", predicted=predicted)
    assert one.fates() == run(instance, rules, "svf-blind").fates()


def test_it_learns_to_keep_room():
    """Answers of one length: after the first are done it preempts no more."""
    n = 60
    instance = Instance([10] * n, [90] * n, 1000, arrival=np.arange(n))
    rules = EngineModel.vllm(1000, block_size=10)
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
    work = engine_work_s(
        np.array([20]), np.array([50.0]), EngineModel.vllm(100), UNIT_STEPS
    )
    assert work.tolist() == [0.5]
