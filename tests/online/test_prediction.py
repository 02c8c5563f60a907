"""Predicted lengths: models of errors, intervals, and what finished requests teach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.prediction import (
    ERRORS,
    length_classes,
    make,
)

LENGTHS = np.random.default_rng(0).lognormal(5, 1.2, 4000).astype(np.int64) + 1


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_predictions_repeat_and_are_lengths(name):
    """The same seed gives the same predictions, the true lengths stay as they are."""
    true = LENGTHS.copy()
    first = make(name)(true, np.random.default_rng(3))
    again = make(name)(true, np.random.default_rng(3))
    assert first.tolist() == again.tolist()
    assert first.dtype == np.int64
    assert first.min() >= 1
    assert true.tolist() == LENGTHS.tolist()
    assert make(name)(np.zeros(0, dtype=np.int64), np.random.default_rng(0)).size == 0


def test_exact_is_exact_and_so_is_a_lognormal_without_spread():
    rng = np.random.default_rng(0)
    assert make("exact")(LENGTHS, rng).tolist() == LENGTHS.tolist()
    assert make("lognormal", sigma=0.0)(LENGTHS, rng).tolist() == LENGTHS.tolist()


def test_a_lognormal_has_its_spread_and_no_bias_in_the_median():
    """Of log ratios, median 0 and standard deviation sigma."""
    long = LENGTHS + 1000  # where rounding does not matter
    ratio = np.log(make("lognormal", sigma=0.7)(long, np.random.default_rng(1)) / long)
    assert np.median(ratio) == pytest.approx(0, abs=0.04)
    assert ratio.std() == pytest.approx(0.7, rel=0.05)


def test_biased_by_ten_both_ways():
    rng = np.random.default_rng(0)
    assert make("biased", factor=10.0)(np.array([1, 7]), rng).tolist() == [10, 70]
    assert make("biased", factor=0.1)(np.array([4, 70]), rng).tolist() == [1, 7]


def test_a_rank_preserving_model_keeps_the_order_only():
    """Sorted as the true ones are, and most of them far off."""
    predicted = make("rank-preserving")(LENGTHS, np.random.default_rng(2))
    by_length = np.argsort(LENGTHS, kind="stable")
    assert np.all(np.diff(predicted[by_length]) >= 0)
    off = np.abs(np.log(predicted / LENGTHS))
    assert np.median(off) > 0.5


def test_an_adversary_turns_the_order_round():
    """Lengths within the factor of the median are exchanged."""
    got = make("adversarial", factor=10.0)(
        np.array([10, 20, 40, 80]), np.random.default_rng(0)
    )
    assert got.tolist() == [100, 200, 4, 8]


def test_an_unknown_model_is_answered_with_the_list():
    with pytest.raises(
        ValueError, match=r"unknown model .* choose one of: adversarial"
    ):
        make("oracle")


@pytest.mark.parametrize(
    ("name", "option"), [("lognormal", "sigma"), ("biased", "factor")]
)
def test_options_out_of_range_are_refused(name, option):
    with pytest.raises(ValueError, match=f"{option} = -1"):
        make(name, **{option: -1})


@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(0, 3000),
)
def test_a_class_holds_its_length(lengths, width, more):
    """At any width, and nested: exact at 0, everything at 1."""
    decode = np.array(lengths)
    longest = int(decode.max()) + more
    lower, upper = length_classes(decode, width, longest)
    assert np.all(lower >= 1)
    assert np.all((lower <= decode) & (decode <= upper))
    assert np.all(upper <= longest)
    exact, _ = length_classes(decode, 0.0, longest)
    assert exact.tolist() == decode.tolist()
    low, high = length_classes(decode, 1.0, longest)
    assert set(low.tolist()) == {1}
    assert set(high.tolist()) == {longest}


def test_wider_classes_are_fewer():
    counts = [
        len(set(length_classes(LENGTHS, width, 100_000)[0].tolist()))
        for width in (0.0, 0.05, 0.2, 0.5, 1.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-2:] == [2, 1]


@pytest.mark.parametrize("factor", [1e9, 1e19, 1e300])
def test_a_length_beyond_all_measure_is_not_a_short_one(factor):
    """It became negative, and so the shortest of all."""
    predicted = make("biased", factor=factor)(
        np.array([4, 400]), np.random.default_rng(0)
    )
    assert (predicted > 10**9).all()
