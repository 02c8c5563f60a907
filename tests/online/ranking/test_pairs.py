"""Pairs, batches, splits and tau_b, against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.kendall import tau_b
from online.ranking import RankingError
from online.ranking.pairs import (
    check_informative,
    epoch_batches,
    informative_pairs,
    num_informative,
)
from online.ranking.rows import Prompts
from online.ranking.split import split
from tests.online.ranking import naive

LENGTHS = st.lists(st.integers(1, 50).map(float), min_size=2, max_size=30)
DELTAS = st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9])


@given(LENGTHS, DELTAS)
def test_informative_pairs_and_their_number(length, delta):
    """The same pairs as one by one, and as many as the quick count says."""
    longer, shorter = informative_pairs(np.array(length), delta)
    found = set(zip(longer.tolist(), shorter.tolist(), strict=True))
    assert found == naive.pairs(length, delta)
    assert num_informative(np.array(length), delta) == len(found)


def test_the_filter_is_relative_to_the_longer():
    """A pair of 100 and 80 differs by exactly 0.2."""
    assert num_informative(np.array([100.0, 80.0]), 0.2) == 1
    assert num_informative(np.array([100.0, 81.0]), 0.2) == 0


def test_no_informative_pair_is_refused():
    """Lengths that differ, but by less than the filter asks."""
    prompts = Prompts(("a", "b"), np.array([100.0, 99.0]), name="rows.jsonl")
    with pytest.raises(RankingError, match=r"rows\.jsonl: no two of the 2 training"):
        check_informative(prompts, 0.2)


@given(st.integers(2, 70), st.integers(2, 20), st.integers(0, 5))
def test_batches_of_an_epoch(n, batch_size, seed):
    """Every prompt once, and none alone in a batch, so that each has a partner."""
    batches = list(epoch_batches(n, batch_size, np.random.default_rng(seed)))
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    assert all(2 <= len(batch) <= batch_size + 1 for batch in batches)
    again = list(epoch_batches(n, batch_size, np.random.default_rng(seed)))
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_epochs_make_other_pairs():
    """Two epochs of one training put prompts together differently."""
    first, second = (
        next(epoch_batches(100, 10, np.random.default_rng([7, epoch])))
        for epoch in range(2)
    )
    assert set(first.tolist()) != set(second.tolist())


@given(st.lists(st.text(min_size=1, max_size=5), min_size=60, max_size=70, unique=True))
def test_split_by_prompt(texts):
    """Parts are disjoint, cover all, and do not depend on the other prompts."""
    try:
        parts = split(texts, 3)
    except RankingError as error:
        assert "too few" in str(error)  # noqa: PT017
        return
    of = {}
    for name in ("train", "validation", "test"):
        for i in getattr(parts, name):
            assert texts[i] not in of
            of[texts[i]] = name
    assert set(of) == set(texts)
    more = [*(f"{i} more" for i in range(200)), *texts]
    again = split(more, 3)
    for name in ("train", "validation", "test"):
        for i in getattr(again, name):
            assert of.get(more[i], name) == name


def test_split_shares_and_seeds():
    """Shares hold on average; another seed gives another split."""
    texts = [str(i) for i in range(4000)]
    parts = split(texts, 1, validation=0.1, test=0.2)
    assert len(parts.test) / 4000 == pytest.approx(0.2, abs=0.03)
    assert len(parts.validation) / 4000 == pytest.approx(0.1, abs=0.03)
    assert set(parts.test.tolist()) != set(split(texts, 2).test.tolist())
    assert len(split(texts, 1, test=0).test) == 0


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"test": 1.0}, "from 0 to below 1"),
        ({"validation": -0.1}, "from 0 to below 1"),
        ({"validation": 0.0}, "validation must be above 0"),
        ({"validation": 0.6, "test": 0.5}, "leave a share for training"),
    ],
)
def test_bad_shares(shares, message):
    """Shares that leave no part to something."""
    with pytest.raises(RankingError, match=message):
        split(["a", "b"], 0, **shares)


VALUES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=2)


@given(VALUES)
def test_tau_b(pairs):
    """With ties on both sides it is what counting says."""
    a, b = zip(*pairs, strict=True)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert tau_b(a, b) == 0
    else:
        assert tau_b(a, b) == pytest.approx(naive.tau_b(a, b))
