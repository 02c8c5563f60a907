"""Groups that can start together: feasible by their memory profile, never worse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance
from sortedf.groups import CoStart, Exact, Pool
from sortedf.options import Options
from tests import naive
from tests.strategies import instances

pytestmark = pytest.mark.kernel

BLOCKS = st.builds(
    EngineModel, kv_budget=st.just(1), block_size=st.sampled_from([1, 2, 3, 7])
)


def ids_of(instance: Instance, selector: CoStart | Exact) -> list[int]:
    pool = Pool.of(instance)
    positions = selector(pool, np.random.default_rng(0))
    assert positions.tolist() == sorted(set(positions.tolist()))
    return pool.ids[positions].tolist()


def f_of(instance: Instance, ids: list[int]) -> Fraction:
    return Fraction(int(instance.decode[ids].sum()), len(ids) ** 2)


@given(instances(max_requests=12, engine=BLOCKS))
def test_groups_can_start_together_and_are_no_worse_than_the_best_by_peaks(instance):
    """The budget holds in every step after a common start."""
    ids = ids_of(instance, CoStart(Options()))
    assert naive.can_start_together(instance, tuple(ids))
    assert f_of(instance, ids) <= f_of(instance, ids_of(instance, Exact(Options())))


@given(instances(max_requests=7, engine=BLOCKS))
def test_no_group_is_better_than_brute_force(instance):
    """The heuristic respects the floor that all subsets give."""
    ids = ids_of(instance, CoStart(Options()))
    assert f_of(instance, ids) >= naive.best_co_start_f(instance)


def test_short_answers_make_room_for_long_ones():
    """Peaks 6 + 6 + 12 exceed 20; two are gone when the third is large: 5 + 5 + 3."""
    instance = Instance([4, 4, 1], [2, 2, 11], 20)
    assert not instance.peak.sum() <= 20
    assert naive.can_start_together(instance, (0, 1, 2))
    crowd = Instance([4, 4, 4], [2, 2, 3], 18)  # peaks 6 + 6 + 7 = 19
    assert ids_of(crowd, Exact(Options())) == [0, 1]
    assert ids_of(crowd, CoStart(Options())) == [0, 1, 2]


def test_a_request_told_to_outgrow_the_budget_is_still_a_group():
    """While requests arrive a wrong prediction may say so: no group was an error."""
    predicted = np.array([30])
    pool = Pool(np.array([4]), np.array([5]), predicted, np.array([20]), 20, 1)
    assert CoStart(Options())(pool, np.random.default_rng(0)).tolist() == [0]
