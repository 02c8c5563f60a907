"""What a beam will take: right for an affine clock once two widths are known."""

from __future__ import annotations

import pytest

from sortedf.improve.pace import Pace


def test_nothing_is_known_before_the_first():
    assert Pace().seconds(10) == 0


def test_the_first_beam_says_how_long_its_like_takes():
    """Of narrower ones that half of it stays."""
    pace = Pace()
    pace.learn(10, 4.0)
    assert pace.seconds(10) == pytest.approx(4.0)
    assert pace.seconds(0) == pytest.approx(2.0)


@pytest.mark.parametrize(("fixed_s", "row_s"), [(0, 1), (15, 0.5), (3, 0.01)])
def test_two_beams_tell_the_two_parts_apart(fixed_s, row_s):
    pace = Pace()
    for rows in (14, 28):
        pace.learn(rows, fixed_s + rows * row_s)
    for rows in (1, 14, 28, 500):
        assert pace.seconds(rows) == pytest.approx(fixed_s + rows * row_s)


def test_noise_never_makes_time_negative():
    """A wider beam that took less, or far more, or one of the same width again."""
    pace = Pace()
    for rows, took_s in ((14, 9.0), (28, 5.0), (28, 6.0), (56, 400.0), (10, 1e-9)):
        pace.learn(rows, took_s)
        assert pace.seconds(rows) == pytest.approx(took_s)
        assert 0 <= pace.seconds(1) <= pace.seconds(100)
