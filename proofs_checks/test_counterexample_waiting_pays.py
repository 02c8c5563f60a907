"""Refuted: "some order, each request at its earliest feasible start, is optimal".

In ordinary project scheduling such active schedules contain an optimum. Here they do
not: a request that starts later holds less in each step, so delaying several requests a
little, though they would fit, can lower the TEL.

Three requests suffice: prompts 1, 3, 5, answers 7, 3, 3 and `M = 12`. Starts 1, 3, 0
have TEL 17; every order of earliest starts, with any backfill, has at least 18.

Found by exhaustive search (`found/waiting.json`): there is no such instance with two
requests of prompts and answers up to 8, nor with three of up to 6, whatever the budget.
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
    """The optimum is below the best of all 6 orders, and brute force agrees."""
    instance = as_instance(load("waiting"))
    best = tiny.optimum(instance)
    assert best is not None
    assert best.tel == naive.best_tel(instance)
    assert best.tel == 17 == tiny.checked(instance, [1, 3, 0]).tel
    assert tiny.best_in_sequence(instance).tel == 18


def test_no_placement_is_optimal_either() -> None:
    """Nor does any order with any backfill, which starts what fits in each step."""
    instance = as_instance(load("waiting"))
    best = tiny.optimum(instance)
    assert best is not None
    for order in permutations(range(3)):
        for backfill in range(3):
            start = place(instance, order, backfill=backfill).start
            assert tiny.checked(instance, start).tel > best.tel


def test_none_is_smaller() -> None:
    """Two requests with lengths up to 6, three with lengths up to 4."""
    for grid in ((2, 6, 6), (3, 4, 4)):
        seen, found = tiny.scan_waiting(*grid)
        assert seen > 1000
        assert found is None
