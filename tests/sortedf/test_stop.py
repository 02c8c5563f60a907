"""Stop rules: each alone, and together."""

from __future__ import annotations

import math

import pytest

from sortedf.stop import AnyOf, Rounds, SearchState, TargetGap, TimeLimit


def test_each_rule_looks_at_its_own():
    """Not before its limit, and from it on."""
    assert not TimeLimit(2)(SearchState(elapsed_s=1.9))
    assert TimeLimit(2)(SearchState(elapsed_s=2.0))
    assert not Rounds(3)(SearchState(rounds=2))
    assert Rounds(3)(SearchState(rounds=3))
    assert not TargetGap(0.01)(SearchState(value=102, bound=100))
    assert TargetGap(0.01)(SearchState(value=101, bound=100))


def test_no_bound_no_gap():
    """Unknown is not small."""
    assert not TargetGap(10)(SearchState(value=5))
    assert not TargetGap(10)(SearchState(bound=5))
    assert TargetGap(0)(SearchState(value=0, bound=0))


def test_rules_compose():
    """Any of them ends the search, and the least time counts."""
    stop = AnyOf(TimeLimit(10), TimeLimit(4), Rounds(2))
    assert not stop(SearchState(elapsed_s=3, rounds=1))
    assert stop(SearchState(elapsed_s=5, rounds=1))
    assert stop(SearchState(elapsed_s=1, rounds=2))
    assert stop.seconds_left(SearchState(elapsed_s=3)) == 1
    assert Rounds(2).seconds_left(SearchState()) == math.inf
    assert AnyOf().seconds_left(SearchState()) == math.inf
    assert not AnyOf()(SearchState(elapsed_s=1e9))


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (TimeLimit, -1.0, "seconds = -1.0"),
        (TimeLimit, math.nan, "seconds = nan"),
        (Rounds, -1, "rounds = -1"),
        (TargetGap, -0.1, "gap = -0.1"),
        (TargetGap, math.inf, "gap = inf"),
    ],
)
def test_bad_limits_are_refused(make, value, message):
    """Each message names the value."""
    with pytest.raises(ValueError, match=message):
        make(value)


@pytest.mark.parametrize("rule", [TimeLimit, TargetGap])
def test_limits_of_another_type_are_refused(rule):
    """By name, and not for how they compare."""
    with pytest.raises(TypeError, match="must be a number, 0 or more but is '3'"):
        rule("3")
