"""Queues that are kept up to date: equal to sorting all that waits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.parts import ranks
from online.policies.parts.group_queue import GroupQueue
from online.policies.parts.lengths import PredictedLengths, Raised
from online.policies.parts.moving_queue import MovingQueue
from online.policies.parts.ranked_queue import MANY, RankedQueue
from sortedf.engine_model import EngineModel
from sortedf.groups import Exact, quantile_greedy
from sortedf.options import Options
from tests.online.policies.states import World

pytestmark = pytest.mark.kernel

comings_and_goings = st.lists(
    st.tuples(st.sampled_from(["arrive", "start", "evict"]), st.integers(0, 19)),
    max_size=40,
)


def play(world: World, moves: list[tuple[str, int]]) -> None:
    """Do what is possible of some moves."""
    for move, i in moves:
        if move == "arrive" and i not in world.waiting and i not in world.running:
            world.arrive([i])
        elif move == "start" and i in world.waiting:
            world.start([i])
        elif move == "evict" and i in world.running:
            world.evict(i)


@given(st.lists(comings_and_goings, max_size=6), st.integers(0, 25))
def test_ranked_and_moving_queues_equal_sorting(rounds, count):
    """After any comings and goings, evictions in the same step included."""
    decode = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
    world = World([1] * 20, decode)
    ranked = RankedQueue(ranks.decode)
    moving = MovingQueue(lambda state, ids: -ranks.decode(state.requests, ids))
    for moves in rounds:
        play(world, moves)
        state = world.look()
        ranked.update(state)
        moving.update(state)
        up = sorted(world.waiting, key=lambda i: (decode[i], i))
        down = sorted(world.waiting, key=lambda i: (-decode[i], i))
        assert ranked.head(count) == up[:count]
        assert moving.head(count) == down[:count]
        ranked.rank_again(state)
        assert list(ranked) == up


@given(st.lists(comings_and_goings, max_size=6))
def test_a_plan_holds_all_that_wait_and_no_others(rounds):
    """Whenever groups are selected again."""
    for every, keep in [(0, False), (1, False), (1, True), (3, True)]:
        world = World(list(range(1, 21)), [5, 2, 9, 4] * 5, EngineModel.vllm(60))
        lengths = PredictedLengths()
        queue = GroupQueue(quantile_greedy, lengths, every=every, keep_group=keep)
        for moves in rounds:
            play(world, moves)
            state = world.look()
            lengths.update(state)
            queue.update(state)
            assert sorted(queue.head(25)) == sorted(world.waiting)


def test_many_that_arrive_at_once_are_sorted_too():
    """More than are inserted one by one, into a queue that holds some already."""
    n = 3 * MANY
    decode = np.random.default_rng(1).permutation(n).tolist()
    world = World([1] * n, decode)
    queue = RankedQueue(ranks.decode)
    for ids in (range(5), range(5, n - 5), range(n - 5, n)):
        world.arrive(ids)
        queue.update(world.look())
        assert list(queue) == sorted(world.waiting, key=lambda i: decode[i])


def test_a_queue_that_has_seen_nothing_is_empty():
    assert MovingQueue(lambda state, ids: ids).head(3) == []
    assert RankedQueue(ranks.decode).head(3) == []


class Plan:
    """Five requests, the last one short, and the plan of those that wait."""

    def __init__(
        self, every: int, keep_group: bool = False, kv_budget: int = 64
    ) -> None:
        self.world = World([10] * 5, [6, 6, 6, 6, 1], EngineModel.vllm(kv_budget))
        self._told = PredictedLengths()
        select = Exact(Options())
        self._queue = GroupQueue(select, self._told, every=every, keep_group=keep_group)

    def after(self, *, arrive=(), start=(), changed=()) -> list[int]:
        self.world.arrive(arrive)
        self.world.start(start)
        state = self.world.look(changed=changed)
        self._told.update(state)
        self._queue.update(state)
        return self._queue.head(5)


def plan(every: int, keep_group: bool) -> list[int]:
    """Order after two of four have started and a short one has arrived."""
    plan = Plan(every, keep_group)
    assert plan.after(arrive=[0, 1, 2, 3]) == [0, 1, 2, 3]
    plan.after(start=[0, 1])
    return plan.after(arrive=[4])


def test_when_groups_are_selected_again_is_an_option():
    """At each arrival; not before the plan is used up; or but for the group begun."""
    assert plan(every=1, keep_group=False) == [4, 2, 3]
    assert plan(every=1, keep_group=True) == [2, 3, 4]
    assert plan(every=0, keep_group=False) == [2, 3, 4]
    assert plan(every=2, keep_group=False) == [2, 3, 4]


def test_a_group_is_kept_only_once_it_has_begun():
    """Neither before one of it starts, nor because the group before it had begun."""
    untouched = Plan(every=1, keep_group=True)
    untouched.after(arrive=[0, 1, 2, 3])
    assert untouched.after(arrive=[4])[0] == 4
    by_twos = Plan(every=1, keep_group=True, kv_budget=32)
    by_twos.after(arrive=[0, 1, 2, 3])
    by_twos.after(start=[0])
    assert by_twos.after(start=[1]) == [2, 3]
    assert by_twos.after(arrive=[4])[0] == 4


def test_every_second_arrival_is_counted_from_the_first():
    plan = Plan(every=2)
    plan.after(arrive=[0])
    assert plan.after(arrive=[4]) == [4, 0]
    assert plan.after(arrive=[1])[0] == 4


def test_a_new_prediction_is_planned_with():
    """The request leaves its group and comes into one of its new length."""
    plan = Plan(every=1)
    assert plan.after(arrive=[0, 1, 2, 3]) == [0, 1, 2, 3]
    assert plan.world.table.update_hint(3, 1, None)
    assert plan.after(changed=[3])[0] == 3


def test_outlived_lengths_are_raised_and_stay_so():
    """To one more token than was made, or a multiple; an eviction does not lower it."""
    world = World([5] * 2, [30, 30])
    world.table.ints[2, :2] = 4  # what is told of them
    low, high = Raised(), Raised(2.0)

    def look() -> list[list[int]]:
        state = world.look()
        for lengths in (low, high):
            lengths.update(state)
        return [low.by_id[:2].tolist(), high.by_id[:2].tolist()]

    world.arrive([0, 1])
    assert look() == [[4, 4], [4, 4]]
    world.start([0])
    for _ in range(4):
        world.make_tokens()
        last = look()
    assert last == [[5, 4], [10, 4]]
    world.evict(0)
    world.table.ints[4, 0] = 0
    assert look() == [[5, 4], [10, 4]]
    with pytest.raises(ValueError, match=r"factor = 0.5 but must be"):
        Raised(0.5)


def test_an_unknown_selector_is_answered_with_the_list():
    from online.policy import make_policy

    with pytest.raises(
        ValueError, match=r"unknown group selector 'best'; choose one of: exact"
    ):
        make_policy("sorted-f-online", groups="best")
    assert np.array_equal(ranks.learned(World([1], [1]).table.view, np.array([0])),
                          [np.inf])  # fmt: skip
