"""The search where prompts share prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from sortedf import EngineModel, check, generate, solve
from sortedf.methods.shared_search import moved_run


def test_moves_keep_every_request():
    """And change most orders."""
    rng = np.random.default_rng(0)
    changed = 0
    for n in (2, 3, 12):
        tree = rng.integers(0, 3, n)
        order = rng.permutation(n)
        for _ in range(300):
            moved = moved_run(order, tree, rng)
            assert sorted(moved.tolist()) == list(range(n))
            changed += not np.array_equal(moved, order)
    assert changed > 450


@pytest.fixture(scope="module")
def instance():
    trace = generate("few-shot", 150, seed=2, per_prefix=15)
    return trace.to_instance(engine=EngineModel(16384, prefix_caching=True))[0]


def test_the_same_seed_gives_the_same_schedule(instance):
    """Without a time limit it makes a number of moves."""
    first, again = (solve(instance, seed=3, bound="none") for _ in range(2))
    assert first.schedule.start.tolist() == again.schedule.start.tolist()
    assert first.found_by == "moves"
    assert check(instance, first.schedule).feasible


def test_better_schedules_are_reported_as_they_are_found(instance):
    """Each below the one before, the last of them the result's."""
    seen = []
    result = solve(instance, on_better=lambda value, _: seen.append(value), seed=1)
    assert seen == sorted(set(seen), reverse=True)
    assert seen[-1] == result.tel


def test_a_time_limit_of_nothing_gives_the_first_list(instance):
    """And a given window is kept to."""
    result = solve(instance, time_limit=0, backfill=7)
    assert (result.status, result.found_by) == ("time_limit", "subtree-volume")
    assert result.backfill == 7


def test_interrupts_leave_the_best_schedule(instance):
    """Ctrl-C ends the search, as elsewhere."""

    def interrupt(value, bound):
        raise KeyboardInterrupt

    result = solve(instance, bound="none", on_better=interrupt)
    assert result.status == "time_limit"
    assert check(instance, result.schedule).feasible
