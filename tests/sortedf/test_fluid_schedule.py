"""The fluid schedule: tick by tick, the largest weight for its work that is there."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf.fluid_schedule import fluid_pieces, mean_busy_times


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 9), st.integers(0, 4)),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 5),
    st.booleans(),
)
def test_it_is_the_rule_played_tick_by_tick(requests, speed, weighted):
    """Each tick goes to the best that has arrived; ties to the earlier request."""
    arrival, volumes, weight = (list(column) for column in zip(*requests, strict=True))
    rest, served, clock = list(volumes), [], 0
    while any(rest):
        there = [i for i, a in enumerate(arrival) if rest[i] and a * speed <= clock]
        if there:
            key = {i: Fraction(weight[i] if weighted else 1, volumes[i]) for i in there}
            best = min(there, key=lambda i: (-key[i], i))
            served.append((best, clock))
            rest[best] -= 1
        clock += 1
    given_weight = weight if weighted else None
    pieces = list(fluid_pieces(arrival, volumes, speed, given_weight))
    ticks = [(i, t) for i, begin, end in pieces for t in range(begin, end)]
    assert ticks == served
    busy = mean_busy_times(arrival, volumes, speed, given_weight)
    assert busy == [
        sum(2 * t + 1 for k, t in served if k == i) for i in range(len(volumes))
    ]


def test_a_smaller_request_interrupts():
    """Work 5 from step 0 at speed 4; 2 more arrive after a step and go first."""
    pieces = list(fluid_pieces([0, 1], [5, 2], 4))
    assert pieces == [(0, 0, 4), (1, 4, 6), (0, 6, 7)]


@pytest.mark.parametrize("weight", [None, []])
def test_nothing_to_do(weight):
    """No requests, no pieces."""
    assert list(fluid_pieces([], [], 3, weight)) == []
