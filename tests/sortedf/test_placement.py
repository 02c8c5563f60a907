"""Placement: equal to the step-by-step twin, and feasible to the checker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import check, place
from tests import naive
from tests.strategies import engines, instances

pytestmark = pytest.mark.kernel


@given(instances(engine=engines()), st.randoms(), st.integers(0, 4))
def test_equals_the_step_by_step_twin(instance, random, backfill):
    """Skipping steps loses nothing: the same starts as trying every step."""
    order = list(range(instance.num_requests))
    random.shuffle(order)
    fast = place(instance, order, backfill=backfill)
    assert fast.start.tolist() == naive.place(instance, order, backfill)
    assert check(instance, fast).feasible
