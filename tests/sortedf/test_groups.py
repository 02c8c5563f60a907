"""Group selectors: exact where they say exact, and never better than exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import Instance
from sortedf.errors import TooLargeError
from sortedf.groups import (
    SELECTORS,
    Pool,
    exact_dp,
    f_metric,
    local_swap,
    quantile_greedy,
)
from sortedf.options import Options
from tests import naive
from tests.strategies import engines, examples, instances

pytestmark = pytest.mark.kernel

EVERY = [make(Options()) for _, make in sorted(SELECTORS.items())]


def ids_of(instance: Instance, select, seed: int = 0) -> list[int]:
    pool = Pool.of(instance)
    positions = select(pool, np.random.default_rng(seed))
    assert positions.tolist() == sorted(set(positions.tolist()))
    return pool.ids[positions].tolist()


def f_of(instance: Instance, ids: list[int]) -> float:
    return f_metric(int(instance.decode[ids].sum()), len(ids))


@given(instances(max_requests=8, engine=engines()))
def test_exact_dp_is_the_group_of_brute_force(instance):
    """The same ids, ties included: larger first, then the lower ids."""
    expected = naive.best_group(instance, list(range(instance.num_requests)))
    assert sorted(ids_of(instance, exact_dp)) == expected


@given(instances(max_requests=8, max_length=3))
def test_exact_dp_settles_many_ties_like_brute_force(instance):
    """With lengths from 1 to 3 almost everything ties."""
    expected = naive.best_group(instance, list(range(instance.num_requests)))
    assert sorted(ids_of(instance, exact_dp)) == expected


@given(instances(max_requests=30), st.integers(0, 3))
def test_heuristic_groups_are_feasible_and_never_better_than_exact(instance, seed):
    """The budget holds for the sum of peaks, and exact is a floor for F."""
    floor = f_of(instance, ids_of(instance, exact_dp))
    for select in (local_swap, quantile_greedy):
        ids = ids_of(instance, select, seed)
        assert ids
        assert instance.peak[ids].sum() <= instance.usable_kv
        assert f_of(instance, ids) >= floor


@given(instances(max_requests=30), st.integers(0, 3))
def test_local_swap_is_never_worse_than_quantile_greedy(instance, seed):
    """It starts from that group as well, with the same sample."""
    swapped = f_of(instance, ids_of(instance, local_swap, seed))
    assert swapped <= f_of(instance, ids_of(instance, quantile_greedy, seed))


@given(instances(max_requests=20))
def test_local_swap_ends_where_no_single_move_helps(instance):
    """No insertion, drop or swap makes F smaller."""
    inside = set(ids_of(instance, local_swap))
    best = f_of(instance, sorted(inside))
    outside = set(range(instance.num_requests)) - inside
    neighbours = [inside | {j} for j in outside]
    neighbours += [inside - {i} for i in inside if len(inside) > 1]
    neighbours += [inside - {i} | {j} for i in inside for j in outside]
    for group in neighbours:
        if instance.peak[sorted(group)].sum() <= instance.usable_kv:
            assert f_of(instance, sorted(group)) >= best


@examples(20)
@given(st.integers(600, 900), st.integers(0, 5))
def test_quantiles_of_a_large_pool_are_sampled(n, seed):
    """Above the sample size the group depends on the seed alone, and is feasible."""
    rng = np.random.default_rng(n)
    instance = Instance(rng.integers(1, 90, n), rng.integers(1, 90, n), 1000)
    ids = ids_of(instance, quantile_greedy, seed)
    assert ids == ids_of(instance, quantile_greedy, seed)
    assert instance.peak[ids].sum() <= 1000


def test_a_table_that_does_not_fit_is_refused_with_a_way_out():
    """exact-dp says what it would need and names the other selectors."""
    n = 3000
    instance = Instance([1] * n, [1] * n, 100_000)
    message = r"exact-dp would need .* GiB for 3000 requests .* use exact."
    with pytest.raises(TooLargeError, match=message):
        exact_dp(Pool.of(instance), np.random.default_rng(0))


@pytest.mark.parametrize("select", EVERY)
def test_one_huge_answer_alone_is_still_a_group(select):
    """Something is always selected, so the order always ends."""
    assert ids_of(Instance([1], [500], 501), select) == [0]


@pytest.mark.parametrize("select", EVERY)
def test_long_answers_wait_even_if_they_fit(select):
    """F({0}) = 1, but with the long one it would be 1001 / 4."""
    assert ids_of(Instance([1, 1], [1, 1000], 5000), select) == [0]
