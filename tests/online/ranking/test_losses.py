"""Losses against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.ranking.losses import LOSSES, Target
from tests.online.ranking import naive

torch = pytest.importorskip("torch")

BATCHES = st.lists(
    st.tuples(st.floats(-4, 4), st.integers(1, 400)), min_size=2, max_size=12
)
TARGET = Target(delta=0.2, margin=0.7, mean=4.0, spread=1.5)


def loss(name, scores, length):
    tensor = torch.tensor(scores, dtype=torch.float64)
    found = LOSSES[name](tensor, np.array(length, dtype=float), TARGET)
    return None if found is None else float(found)


@given(BATCHES)
def test_pairwise(batch):
    """The mean hinge over the informative pairs, or nothing without any."""
    scores, length = zip(*batch, strict=True)
    found = loss("pairwise", scores, length)
    if naive.pairs(length, 0.2):
        assert found == pytest.approx(naive.pairwise(scores, length, 0.2, 0.7))
    else:
        assert found is None


@given(BATCHES)
def test_listwise(batch):
    """Minus the log likelihood of the true order."""
    scores, length = zip(*batch, strict=True)
    assert loss("listwise", scores, length) == pytest.approx(
        naive.list_mle(scores, length)
    )


@given(BATCHES)
def test_pointwise(batch):
    """Squared error of the log length in standard units."""
    scores, length = zip(*batch, strict=True)
    errors = [s - (np.log(o) - 4.0) / 1.5 for s, o in batch]
    assert loss("pointwise", scores, length) == pytest.approx(
        np.mean(np.square(errors))
    )


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_true_order_is_better(name):
    """Every loss is lower for scores in the order of the lengths than reversed."""
    length = [1, 20, 300]
    assert loss(name, [-2.0, -0.5, 1.2], length) < loss(name, [1.2, -0.5, -2.0], length)
