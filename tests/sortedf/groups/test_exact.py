"""Exact groups at every size: the very group of the dynamic program, ties included."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import METHODS, Instance, Status, check, solve
from sortedf.groups import Exact, Pool, exact_dp, fronts
from sortedf.groups.core import (
    MAX_SCALE_BITS,
    Core,
    MultiplierRanking,
    _smallest,
    best_multiplier,
    scale_for,
    undominated,
)
from sortedf.groups.exact import select
from sortedf.groups.fronts import FrontRow, best_choice
from sortedf.groups.pool import largest_size
from sortedf.methods import RULES
from sortedf.options import Options
from tests import naive
from tests.strategies import engines, examples, instances

pytestmark = pytest.mark.kernel


def pool_of(prefill, decode, kv_budget: int) -> Pool:
    return Pool.of(Instance(np.maximum(prefill, 1), decode, kv_budget))


def dp_group(pool: Pool) -> list[int]:
    return exact_dp(pool, np.random.default_rng(0)).tolist()


@given(instances(max_requests=8, engine=engines()), st.floats(0, 1))
def test_group_is_that_of_brute_force(instance, share):
    """The same ids, wherever the search for a multiplier starts."""
    pool = Pool.of(instance)
    found = select(pool, share=share)
    ids = sorted(pool.ids[found.positions].tolist())
    assert ids == naive.best_group(instance, list(range(instance.num_requests)))
    total = int(instance.decode[ids].sum())
    assert found.f == found.f_lower_bound == Fraction(total, len(ids) ** 2)
    assert found.complete


@given(instances(max_requests=60, max_length=4), st.floats(0, 1))
def test_many_ties_are_settled_as_by_the_dynamic_program(instance, share):
    """With lengths from 1 to 4 almost everything ties."""
    pool = Pool.of(instance)
    assert select(pool, share=share).positions.tolist() == dp_group(pool)


@given(instances(max_requests=24, max_length=60))
def test_varied_lengths_agree_with_the_dynamic_program(instance):
    """Few ties: bounds and searches decide."""
    pool = Pool.of(instance)
    assert select(pool).positions.tolist() == dp_group(pool)


FAMILIES = {
    "all equal": lambda rng, n: (np.full(n, 7), np.full(n, 3)),
    "two kinds": lambda rng, n: (rng.choice([2, 30], n), rng.choice([3, 40], n)),
    "equal answers": lambda rng, n: (rng.integers(1, 60, n), np.full(n, 9)),
    "equal prompts": lambda rng, n: (np.full(n, 9), rng.integers(1, 60, n)),
    "even peaks": lambda rng, n: (2 * rng.integers(3, 40, n) - 5, np.full(n, 5)),
    # Peak 390 - o, in steps of 6: a group is as good as its memory is full.
    "subset sums": lambda rng, n: (lambda w: (2 * w - 390, 390 - w))(
        200 + 6 * rng.integers(0, 4, n)
    ),
    "one dominates": lambda rng, n: (
        np.append(rng.integers(1, 20, n - 1), 900),
        rng.integers(1, 20, n),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("roominess", [0, 1, 300, 823, 10**6])
def test_hard_families_agree_with_the_dynamic_program(family, roominess):
    """Budgets at the largest peak, just above, some times it, and for everything."""
    n = 16
    for seed in range(2):
        s, o = FAMILIES[family](np.random.default_rng(seed), n)
        budget = min(int((s + o).max()) + roominess, int((s + o).sum()))
        pool = pool_of(s, o, budget)
        assert select(pool).positions.tolist() == dp_group(pool)


@given(instances(max_requests=30, arrivals=False))
def test_whole_orders_are_equal(instance):
    """Group after group, with what the selector remembers from the last one."""
    expected = RULES["exact-dp"](instance, Options())
    for name in ("sorted-f", "exact"):
        assert RULES[name](instance, Options()).tolist() == expected.tolist()


@given(instances(max_requests=8), st.floats(0, 0.99))
def test_bounds_hold_and_keep_every_group_in_reach(instance, share):
    """No bound is above the least sum of its size; no group within a target is lost."""
    pool = Pool.of(instance)
    scale = scale_for(pool.kv_budget, len(pool.ids))
    core = Core.whole(pool)
    ranking = MultiplierRanking(core, int(share * scale), scale, len(pool.ids))
    least = naive.least_sums(instance)
    sizes = np.array(sorted(least))
    bounds = ranking.least_sums(sizes).tolist()
    assert all(
        bound <= least[size] for size, bound in zip(sizes.tolist(), bounds, strict=True)
    )
    shrunk = ranking.shrunk(sizes, np.array([least[size] for size in sizes]))
    ids = naive.best_group(instance, list(range(instance.num_requests)))
    assert set(pool.ids[shrunk.fixed]) <= set(ids)
    assert set(ids) <= set(pool.ids[shrunk.fixed]) | set(pool.ids[shrunk.free])
    assert shrunk.room == pool.kv_budget - pool.peak[shrunk.fixed].sum()
    assert shrunk.spent == pool.decode[shrunk.fixed].sum()


@given(instances(max_requests=8), st.data())
def test_best_multiplier_gives_the_highest_bound(instance, data):
    """No other multiplier proves more than a rounding above it."""
    pool = Pool.of(instance)
    scale = scale_for(pool.kv_budget, len(pool.ids))
    size = data.draw(st.integers(1, largest_size(pool)))
    core = Core.whole(pool)

    def bound(multiplier: int) -> int:
        ranking = MultiplierRanking(core, multiplier, scale, size)
        return int(ranking.least_sums(np.array([size]))[0])

    best = bound(best_multiplier(core, size, scale))
    other = data.draw(st.integers(0, scale - 1))
    assert bound(other) <= best + 1


def test_no_multiplier_for_a_size_that_does_not_fit():
    """Three peaks of 5 do not fit 12 tokens."""
    core = Core.whole(pool_of([3, 3, 3], [2, 2, 2], 12))
    assert best_multiplier(core, 3, 1024) is None
    assert best_multiplier(core, 2, 1024) == 0


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(0, 22))
def test_undominated_is_a_count_of_earlier_entries(weights, size):
    """Those with fewer than `size` earlier entries that are no larger; 0: no matter."""
    expected = [
        size == 0 or sum(other <= weight for other in weights[:i]) < size
        for i, weight in enumerate(weights)
    ]
    array = np.array(weights, dtype=np.int64)
    assert undominated(array, size).tolist() == expected


@pytest.mark.parametrize(
    ("budget", "size"), [(10, 2), (16492, 500), (2**31 - 1, 2**30)]
)
def test_scale_keeps_sums_in_64_bits(budget, size):
    """As fine as it can be, and not finer."""
    scale = scale_for(budget, size)
    assert 1 <= scale <= 2**MAX_SCALE_BITS
    assert scale == 1 or scale * budget * (size + 2) < 2**60


def test_largest_lengths_do_not_overflow():
    """Peaks of half the largest budget."""
    half = 2**30 - 1
    s = np.array([half - 1, half - 9, half - 5, half - 7])
    pool = pool_of(s, np.array([1, 3, 2, 1]), 2**31 - 1)
    assert select(pool).positions.tolist() == [0, 1]


@given(instances(max_requests=7), st.data())
def test_choice_among_few_is_that_of_brute_force(instance, data):
    """Least sum of answers within the target and the room, then lower ids."""
    o, w = instance.decode, instance.peak
    n = instance.num_requests
    size = data.draw(st.integers(1, n))
    target = data.draw(st.integers(0, int(o.sum())))
    room = instance.kv_budget
    choices = [
        (int(o[list(group)].sum()), group)
        for group in combinations(range(n), size)
        if w[list(group)].sum() <= room and o[list(group)].sum() <= target
    ]
    middle = data.draw(st.integers(1, 1023))
    rows = [FrontRow.of(o, w, size, target, room, a, 1024) for a in (0, middle, 1024)]
    found = best_choice(o, w, size, room, rows, stop=lambda: False)
    expected = list(min(choices)[1]) if choices else None
    assert (None if found is None else found.tolist()) == expected


def subset_sums(n: int) -> Instance:
    """Peaks are multiples of 6 and the budget is none: bounds decide no request."""
    w = 200 + 6 * np.random.default_rng(0).integers(0, 4, n)
    return Instance(2 * w - 390, 390 - w, 1041)


def test_sizes_whose_products_leave_64_bits():
    """70,000 answers of 15,000 tokens: sum times size squared is above 2**62."""
    n = 70_000
    pool = pool_of(np.full(n, 15_000), np.full(n, 15_000), 2**31 - 1)
    found = select(pool)
    assert found.f == Fraction(15_000, n)
    assert found.complete


@pytest.mark.parametrize("segment", [1, 2, 5])
def test_layers_made_again_give_the_same_group(segment, monkeypatch):
    """Many segments, and room for states that doubles all the time."""
    pool = Pool.of(subset_sums(20))
    expected = select(pool).positions.tolist()
    monkeypatch.setattr(fronts, "SEGMENT", segment)
    monkeypatch.setattr(fronts, "FIRST_STATES", 1)
    assert select(pool).positions.tolist() == expected == dp_group(pool)


def test_too_many_states_end_with_a_proven_bound(monkeypatch):
    """The group is feasible, and its F and the bound enclose the best F."""
    pool = Pool.of(subset_sums(20))
    best = select(pool).f
    monkeypatch.setattr(fronts, "FIRST_STATES", 1)
    monkeypatch.setattr(fronts, "MAX_STATES", 1)
    found = select(pool)
    assert not found.complete
    assert found.f_lower_bound <= best <= found.f


@given(instances(max_requests=12), st.integers(0, 4))
def test_a_stopped_search_says_how_far_it_may_be_off(instance, patience):
    """Whenever it is stopped: feasible, with a bound below the best F."""
    pool = Pool.of(instance)
    asked = iter(range(100))
    found = select(pool, stop=lambda: next(asked) >= patience)
    assert pool.peak[found.positions].sum() <= pool.kv_budget
    assert found.f_lower_bound <= select(pool).f <= found.f
    assert not found.complete or found.f_lower_bound == found.f


@pytest.mark.parametrize("name", ["sorted-f", "exact", "sorted-f-co-start"])
def test_time_limit_is_a_status_and_the_schedule_is_whole(name):
    """The rest of the order is greedy; without a limit the status says feasible."""
    instance = subset_sums(60)
    result = solve(instance, name, time_limit=0, bound="none")
    assert result.status is Status.TIME_LIMIT
    assert check(instance, result.schedule).feasible
    assert solve(instance, name, bound="none").status is Status.FEASIBLE


def test_selector_remembers_that_it_was_stopped():
    """One incomplete group makes the order incomplete."""
    late = Exact(Options(time_limit_s=0))
    late(Pool.of(subset_sums(20)), np.random.default_rng(0))
    assert not late.complete
    assert METHODS["exact"].solve(subset_sums(20), Options()).complete


@examples(5)
@given(st.integers(0, 2**32))
def test_mixed_backlogs_agree_with_the_dynamic_program(seed):
    """Chats and documents: a whole order, group by group."""
    rng = np.random.default_rng(seed)
    n = 20
    long = rng.random(n) < 0.2
    s = np.where(long, rng.integers(200, 400, n), rng.integers(1, 30, n))
    o = np.where(long, rng.integers(10, 90, n), rng.integers(1, 60, n))
    pool = pool_of(s, o, 500)
    selector = Exact(Options())
    while len(pool.ids):
        group = selector(pool, rng)
        assert group.tolist() == dp_group(pool)
        pool = pool.without(group)


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=40), st.data())
def test_the_smallest_are_found_without_sorting(values, data):
    """Whatever the ties; nothing is lost on the way."""
    count = data.draw(st.integers(1, len(values)))
    mixed = np.array(values)
    assert _smallest(mixed, count) == sorted(values)[count - 1]
    assert sorted(mixed.tolist()) == sorted(values)
