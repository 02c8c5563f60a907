"""Placement: equal to the step-by-step twin, and feasible to the checker."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, Schedule, check, place
from sortedf.kernels import NEVER
from sortedf.placement import SharedPlacing
from tests import naive
from tests.strategies import engines, instances, shared_instances

pytestmark = pytest.mark.kernel


@given(instances(engine=engines()), st.randoms(), st.integers(0, 4))
def test_equals_the_step_by_step_twin(instance, random, backfill):
    """Skipping steps loses nothing: the same starts as trying every step."""
    order = list(range(instance.num_requests))
    random.shuffle(order)
    fast = place(instance, order, backfill=backfill)
    assert fast.start.tolist() == naive.place(instance, order, backfill)
    assert check(instance, fast).feasible


@given(shared_instances(), st.randoms(), st.integers(0, 4))
def test_equals_the_twin_where_prompts_share_prefixes(instance, random, backfill):
    """A start never lets others of its tree start earlier; no step is skipped."""
    order = list(range(instance.num_requests))
    random.shuffle(order)
    fast = place(instance, order, backfill=backfill)
    assert fast.start.tolist() == naive.place(instance, order, backfill)
    report = check(instance, fast)
    assert report.feasible
    assert report.peak_kv == fast.peak_kv


@given(shared_instances(), st.randoms(), st.integers(0, 4))
def test_a_list_is_given_up_once_it_is_known_to_be_too_slow(instance, random, backfill):
    """By its exact TEL: a limit of that keeps it, one less does not."""
    assume(instance.prefixes is not None)
    order = np.array(random.sample(range(instance.num_requests), instance.num_requests))
    placing = SharedPlacing(instance)
    start, tel = placing.place(order, backfill)
    assert start.tolist() == place(instance, order, backfill=backfill).start.tolist()
    assert tel == Schedule(instance, start).tel
    assert placing.place(order, backfill, tel)[1] == tel
    assert placing.place(order, backfill, tel - 1)[1] == NEVER


def test_only_prefixes_have_a_placement_of_their_own():
    with pytest.raises(ValueError, match="the instance has no shared prefixes"):
        SharedPlacing(Instance([1], [1], 9))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [1, 4])
def test_long_queues_equal_the_twin(seed, block):
    """Forty wait at once, so that those behind the window are many and come late."""
    rng = np.random.default_rng(seed)
    n = 40
    instance = Instance(
        rng.integers(1, 9, n), rng.integers(1, 9, n), None, rng.integers(0, 40, n),
        EngineModel(24, block_size=block, max_num_seqs=4),
    )  # fmt: skip
    order = rng.permutation(n).tolist()
    for backfill in (0, 1, 3):
        found = place(instance, order, backfill=backfill).start.tolist()
        assert found == naive.place(instance, order, backfill)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1], "order has 2 entries but there are 3 requests"),
        ([0, 1, 2, 2], "order has 4 entries"),
        ([0, 2, 2], "order names request 2 more than once"),
        ([1, 1, 0], "order names request 1 more than once"),
        ([0, 1, 3], r"order\[2\] = 3 but must be an integer from 0 to 2"),
        ([0, 1, -1], r"order\[2\] = -1"),
    ],
)
def test_what_is_no_permutation_is_refused(order, message):
    """The first entry that is wrong is named."""
    with pytest.raises(ValueError, match=message):
        place(Instance([1, 1, 1], [1, 1, 1], 9), order)


def test_a_negative_window_is_refused():
    with pytest.raises(ValueError, match="backfill = -1 but must be"):
        place(Instance([1], [1], 9), [0], backfill=-1)


def test_a_single_request_is_number_0():
    with pytest.raises(ValueError, match=r"order\[0\] = 1 but must be"):
        place(Instance([1], [1], 9), [1])


def test_nothing_to_place():
    assert place(Instance([], [], 9), []).start.tolist() == []
    with pytest.raises(ValueError, match=r"order\[0\] = 1|1 entries"):
        place(Instance([], [], 9), [1])
