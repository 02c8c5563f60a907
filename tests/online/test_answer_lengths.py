"""Lengths of completed answers, as counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.answer_lengths import AnswerLengths


@given(st.lists(st.integers(1, 40), max_size=40), st.integers(0, 45))
def test_what_remains_is_the_mean_over_longer_ones(lengths, output_tokens):
    """As counted by hand; as long again where nothing longer was seen."""
    known = AnswerLengths(40)
    for length in lengths:
        known.observe([length])
        known.remaining(
            np.array([output_tokens])
        )  # what was learned so far is not kept
    seen = lengths[: known.count]
    longer = [o - output_tokens for o in seen if o > output_tokens]
    expected = sum(longer) / len(longer) if longer else max(min(output_tokens, 40), 1)
    assert known.remaining(np.array([output_tokens]))[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("largest", "least", "message"), [(0, 1, "longest = 0"), (5, 0, "least = 0")]
)
def test_limits_are_at_least_one(largest, least, message):
    with pytest.raises(ValueError, match=message):
        AnswerLengths(largest, least)


def test_a_batch_grows_with_what_is_known():
    """An eighth of it, so that means change seldom."""
    known = AnswerLengths(40)
    known.observe([5] * 56)
    known.observe([9] * 6)
    assert known.count == 56
    known.observe([9])
    assert known.count == 63
    assert known.mean == pytest.approx((56 * 5 + 7 * 9) / 63)


def test_a_length_is_predicted_by_whole_tokens_from_those_so_far():
    known = AnswerLengths(40)
    assert known.predict() is None
    assert known.go_on(np.array([0, 2]), np.array([0, 1, 2])).tolist() == [
        [1, 0, 0],
        [1, 1, 0],
    ]
    known.observe([3, 4])
    assert known.predict() == 4  # 3.5 and no part of a token
    assert known.predict(3) == 4
    assert known.predict(6) == 12  # longer than all: as long again
