"""Counted values: quantiles, means and shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.distribution import Distribution

COUNTED = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(0, 30)), min_size=1, max_size=20
).filter(lambda pairs: any(count for _, count in pairs))


@given(COUNTED, st.floats(0, 1))
def test_counts_are_as_good_as_a_list(pairs, share):
    """Ten tokens after one second are ten ones."""
    values, counts = np.array(pairs).T
    counted = Distribution(values, counts)
    listed = np.repeat(values, counts).astype(float)
    assert counted.num_observations == len(listed)
    assert counted.mean == pytest.approx(listed.mean())
    below = counted.share_within([share * 10])
    assert below == pytest.approx((listed <= share * 10).mean())
    at = counted.quantile(share)
    assert at in listed
    assert (listed <= at).mean() >= share - 1e-6


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1), (0.1, 3), (0.5, 15), (0.95, 29), (0.99, 30), (1, 30)]
)
def test_quantiles_by_hand(share, value):
    """Of 1 to 30, a tenth is at most 3: not 4, which floating point would make it."""
    assert Distribution(np.arange(1, 31)).quantile(share) == value


def test_nothing_observed():
    """No summary, rather than zeros."""
    assert Distribution([]).summary() is None
    assert Distribution([3.0], [0]).summary() is None
    assert np.isnan(Distribution([]).mean)
