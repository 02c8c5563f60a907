"""Refuted: "some order, each request at its earliest feasible start, is optimal".

In ordinary project scheduling such active schedules contain an optimum. Here they do
not: a request that starts later holds less in each step, so delaying several requests a
little, though they would fit, can lower the TEL.

The smallest instance, with four requests and `M = 9`: prompts 1, 1, 2, 2 and answers
4, 4, 2, 2. Starts 1, 2, 0, 1 have TEL 16, but no order of earliest starts gives it.

Found by exhaustive search (`found/waiting.json`): none exists with two requests of
lengths up to 8, with three up to 6, or with four of smaller lengths as listed there.
So a search over orders alone, with any rule of earliest starts, can miss the
optimum; `sortedf`'s own exact method is the integer program over start steps.
"""

from __future__ import annotations

from itertools import permutations

from proofs_checks import tiny
from proofs_checks.search import as_instance, load
from sortedf import place
from tests import naive


def test_no_sequence_of_earliest_starts_is_optimal() -> None:
    """The optimum is below the best of all 24 orders, and brute force agrees."""
    instance = as_instance(load("waiting"))
    best = tiny.optimum(instance)
    assert best is not None
    assert best.tel == naive.best_tel(instance)
    assert best.tel < tiny.best_in_sequence(instance).tel


def test_no_placement_is_optimal_either() -> None:
    """Nor does any order with any backfill, which starts what fits in each step."""
    instance = as_instance(load("waiting"))
    best = tiny.optimum(instance)
    assert best is not None
    for order in permutations(range(4)):
        for backfill in range(4):
            start = place(instance, order, backfill=backfill).start
            assert tiny.checked(instance, start).tel > best.tel


def test_none_is_smaller() -> None:
    """Three requests with lengths up to 4, four with lengths up to 2 and 3."""
    for grid in ((3, 4, 4), (4, 2, 3), (4, 3, 3)):
        seen, found = tiny.scan_waiting(*grid)
        assert seen > 1000
        assert found is None
