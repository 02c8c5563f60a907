"""Rows that are kept in order: equal to sorting them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.parts.sorted_rows import MANY, SortedRows

pytestmark = pytest.mark.kernel

few_or_many = st.one_of(st.integers(1, 4), st.integers(MANY + 1, 3 * MANY))


@given(st.lists(st.tuples(st.booleans(), few_or_many), max_size=12), st.integers(0, 99))
def test_whatever_comes_and_goes_the_rows_are_in_order(moves, seed):
    """One by one and many at once, at either end and in between."""
    draw = np.random.default_rng(seed)
    rows, kept, number = SortedRows(3), [], 0
    for comes, count in moves:
        if comes:
            keys = draw.integers(0, 20, count).tolist()
            fresh = [(key, number + m, -key) for m, key in enumerate(keys)]
            number += count
            rows.insert(fresh)
            kept = sorted(kept + fresh)
        else:
            places = set(draw.permutation(len(kept))[:count].tolist())
            rows.remove([kept[place][:2] for place in places])
            kept = [row for place, row in enumerate(kept) if place not in places]
        assert len(rows) == len(kept)
        assert list(zip(*rows.columns().tolist(), strict=True)) == kept


def test_who_goes_first_moves_nobody():
    """A queue that is served from the front does not shift its rows to the left."""
    rows = SortedRows(2)
    rows.insert([(key, key) for key in range(10)])
    first = rows.columns()[0]
    rows.remove([(0, 0)])
    assert np.shares_memory(first[1:], rows.columns()[0])
    assert first[1:].tolist() == rows.columns()[0].tolist() == list(range(1, 10))


def test_a_full_table_has_nothing_behind_it():
    """Sixty-four rows fill the first table; the last ones leave it one by one."""
    rows = SortedRows(2)
    for begin in range(0, 64, MANY):
        rows.insert([(key, key) for key in range(begin, begin + MANY)])
    for left in (63, 62, 61):
        rows.remove([(left, left)])
        assert rows.columns()[0].tolist() == list(range(left))
