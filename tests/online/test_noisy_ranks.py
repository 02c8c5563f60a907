"""Ranks with a given tau_b: they hit it, and nothing but the order changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.kendall import tau_b
from online.noisy_ranks import NEAR_ENOUGH, noisy_lengths, noisy_rank
from online.prediction import make

LENGTHS = np.random.default_rng(0).lognormal(5.8, 1.0, 1500).astype(np.int64) + 1


def slow_tau_b(x, y):
    """By its definition, pair by pair."""
    both = x_only = y_only = 0
    agree = 0
    for i in range(len(x)):
        for j in range(i):
            a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
            agree += int(a * b)
            both += 1
            x_only += a == 0
            y_only += b == 0
    below = math.sqrt((both - x_only) * (both - y_only))
    return agree / below if below else 0.0


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=12)
)
def test_tau_b_is_what_its_definition_says(pairs):
    """Ties on either side included."""
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    expected = slow_tau_b(x, y)
    assert tau_b(x, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("target", [-1.0, -0.7, 0.0, 0.2, 0.5, 0.8, 0.96, 1.0])
@pytest.mark.parametrize("make_noisy", [noisy_rank, noisy_lengths])
def test_the_target_is_hit(make_noisy, target):
    found = make_noisy(LENGTHS, target, np.random.default_rng(3))
    # Lengths given out tie where the true ones do; reversed, not the same ones.
    slack = 2e-3 if (make_noisy is noisy_lengths and target == -1) else NEAR_ENOUGH
    assert tau_b(LENGTHS, found) == pytest.approx(target, abs=slack)


def test_the_same_seed_gives_the_same_rank():
    first, again, other = (
        noisy_rank(LENGTHS, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


@given(
    st.lists(st.integers(1, 30), max_size=40),
    st.floats(-1, 1),
    st.integers(0, 2**32 - 1),
)
def test_lengths_only_change_places(lengths, target, seed):
    """Whatever the target, ties and all: the same lengths come out."""
    true = np.array(lengths, dtype=np.int64)
    given_out = noisy_lengths(true, target, np.random.default_rng(seed))
    assert given_out.dtype == np.int64
    assert sorted(given_out.tolist()) == sorted(lengths)


@given(st.lists(st.integers(1, 10_000), min_size=3, max_size=30, unique=True))
def test_without_ties_the_nearest_reachable_value_is_found(lengths):
    """Of n requests tau_b moves by steps of two pairs: the next one is near enough."""
    true = np.array(lengths)
    found = tau_b(true, noisy_rank(true, 0.4, np.random.default_rng(0)))
    step = 4 / (len(true) * (len(true) - 1))
    assert abs(found - 0.4) <= step / 2 + NEAR_ENOUGH + 1e-12


def test_the_noise_has_no_favourites():
    """The short and the long are misplaced about as often as each other."""
    scores = noisy_rank(LENGTHS, 0.5, np.random.default_rng(4))
    short = np.median(LENGTHS) > LENGTHS
    within = [tau_b(LENGTHS[half], scores[half]) for half in (short, ~short)]
    assert within[0] == pytest.approx(within[1], abs=0.06)


def test_lengths_that_have_no_order():
    """All equal, one, none: nothing to search for, and nothing breaks."""
    rng = np.random.default_rng(0)
    for lengths in ([], [7], [7, 7, 7]):
        true = np.array(lengths, dtype=np.int64)
        assert noisy_lengths(true, 0.5, rng).tolist() == lengths
        assert len(noisy_rank(true, 0.5, rng)) == len(lengths)


@pytest.mark.parametrize("target", [1.5, -2, math.nan, math.inf])
def test_a_target_out_of_range(target):
    for refuse in (
        lambda: noisy_rank(LENGTHS, target, np.random.default_rng(0)),
        lambda: make("tau", target=target),
    ):
        with pytest.raises(ValueError, match="must be from -1 to 1"):
            refuse()


def test_as_a_model_of_prediction_errors():
    predicted = make("tau", target=0.3)(LENGTHS, np.random.default_rng(5))
    assert tau_b(LENGTHS, predicted) == pytest.approx(0.3, abs=NEAR_ENOUGH)
