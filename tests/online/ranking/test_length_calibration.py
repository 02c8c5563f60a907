"""Lengths that go with scores."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.ranking import RankingError
from online.ranking.length_calibration import LengthCalibration, calibrate

DATA = st.lists(
    st.tuples(st.floats(-5, 5), st.integers(1, 4000)), min_size=1, max_size=120
)


@given(DATA, st.lists(st.floats(-9, 9), min_size=2, max_size=20))
def test_lengths_grow_with_score_and_quantile(data, scores):
    """An order by lengths is one by scores, and quantiles never cross."""
    known = calibrate(*zip(*data, strict=True))
    ascending = np.sort(scores)
    before = np.ones(len(scores))
    for quantile in (0.01, 0.05, 0.2, 0.5, 0.9, 0.99):
        lengths = known.lengths(ascending, quantile)
        assert (np.diff(lengths) >= -1e-9 * lengths[1:]).all()
        assert (lengths >= before * (1 - 1e-9)).all()
        before = lengths
    longest = max(length for _, length in data)
    assert before.max() <= longest * (1 + 1e-9)


def test_quantiles_hold():
    """On new data of the same kind about the right share is below each quantile."""
    rng = np.random.default_rng(1)

    def draw(n):
        score = rng.normal(size=n)
        return score, np.exp(5 + score + 0.5 * rng.normal(size=n)) + 1

    known = calibrate(*draw(4000))
    score, length = draw(4000)
    for quantile in (0.1, 0.5, 0.9):
        below = np.mean(length <= known.lengths(score, quantile))
        assert below == pytest.approx(quantile, abs=0.04)


def test_it_survives_json():
    """A data card keeps it."""
    known = calibrate([0.0, 1.0, 2.0] * 10, range(1, 31))
    again = LengthCalibration.from_dict(json.loads(json.dumps(known.as_dict())))
    scores = [-1.0, 0.3, 5.0]
    assert again.lengths(scores).tolist() == known.lengths(scores).tolist()


def test_other_quantiles_are_refused():
    """Those of another version would be taken for ours."""
    content = {**calibrate([0.0], [5]).as_dict(), "quantiles": [0.5]}
    with pytest.raises(RankingError, match="quantiles"):
        LengthCalibration.from_dict(content)


@pytest.mark.parametrize("quantile", [0.0, 1.0, float("nan")])
def test_bad_quantile(quantile):
    """Only what lies between."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibrate([0.0, 1.0], [1, 2]).lengths([0.0], quantile)
