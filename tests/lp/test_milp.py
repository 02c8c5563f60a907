"""The integer program: brute force's optimum, and honest when time runs out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from lp import milp as module
from lp.column_generation import PricedTime
from lp.highs import Model, Solution, SolverStatus
from lp.milp import milp
from lp.relaxation import solve_relaxation
from sortedf import METHODS, EngineModel, Instance, Status, check, solve
from sortedf.errors import TooLargeError
from sortedf.options import Options
from tests import naive
from tests.strategies import engines, examples, instances

if TYPE_CHECKING:
    from sortedf.methods.table import Outcome


@examples(250)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_it_finds_the_optimum_of_brute_force(instance):
    """With arrivals, blocks and caps; the schedule passes the checker."""
    outcome = milp(instance, Options())
    report = check(instance, outcome.schedule)
    assert report.feasible
    best = naive.best_tel(instance)
    assert report.tel == outcome.schedule.tel == outcome.lower_bound == best
    assert outcome.complete


def tight(n: int, seed: int, **caps: int) -> Instance:
    """Two of the largest fit at once."""
    rng = np.random.default_rng(seed)
    prefill, decode = rng.integers(1, 12, (2, n))
    budget = 2 * int((prefill + decode).max())
    return Instance(prefill, decode, engine=EngineModel(budget, **caps))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seed"), [(6, 0), (6, 1), (6, 3), (7, 0), (7, 1)])
def test_prices_leave_out_nothing_that_matters(n, seed, monkeypatch):
    """The same optimum with every start within the horizon.

    Where that takes a second: others of this size take half a minute.
    """
    instance = tight(n, seed)
    few = milp(instance, Options())
    monkeypatch.setattr(PricedTime, "brackets", lambda self, instance, i, t: 0.0 * t)
    every = milp(instance, Options())
    assert few.complete
    assert every.complete
    assert few.schedule.tel == every.schedule.tel


@pytest.mark.parametrize(
    "caps", [{"block_size": 4}, {"max_num_seqs": 2}, {"max_batched_tokens": 14}]
)
def test_engines_rules_are_kept_where_they_bind(caps):
    """Blocks and caps cost something here, and the optimum pays it."""
    free = milp(tight(7, 1), Options())
    instance = tight(7, 1, **caps)
    outcome = milp(instance, Options())
    assert check(instance, outcome.schedule).feasible
    assert outcome.complete
    assert outcome.schedule.tel > free.schedule.tel


def test_it_improves_on_the_list_rules():
    """Then it is the finder; otherwise the rule that found the schedule is."""
    finders = set()
    for seed in range(8):
        instance = tight(7, seed)
        outcome = milp(instance, Options())
        lists = METHODS["best-list"].solve(instance, Options())
        better = outcome.schedule.tel < lists.schedule.tel
        assert outcome.schedule.tel <= lists.schedule.tel
        assert outcome.found_by == ("milp" if better else lists.found_by)
        assert outcome.backfill == (None if better else lists.backfill)
        finders.add(outcome.found_by)
    assert "milp" in finders
    assert len(finders) > 1


def test_it_is_a_method_by_name():
    """Its bound is the result's, and makes it optimal."""
    result = solve(tight(7, 2), "milp", bound="none")
    assert result.status is Status.OPTIMAL
    assert result.lower_bound == result.tel


def test_no_time_gives_the_start():
    """Whatever the list rules found at once, with the sum of the answers."""
    instance = tight(12, 1)
    outcome = milp(instance, Options(time_limit_s=0.0))
    assert check(instance, outcome.schedule).feasible
    assert not outcome.complete
    assert outcome.lower_bound == int(instance.decode.sum())


def test_little_time_gives_a_schedule_and_a_true_bound():
    """Both at least as good as those of the relaxation and the list rules."""
    instance = tight(16, 1)
    outcome = milp(instance, Options(time_limit_s=1.5))
    assert check(instance, outcome.schedule).feasible
    assert not outcome.complete
    assert outcome.lower_bound is not None
    assert solve_relaxation(instance).bound <= outcome.lower_bound
    assert outcome.lower_bound < outcome.schedule.tel
    lists = METHODS["best-list"].solve(instance, Options())
    assert outcome.schedule.tel <= lists.schedule.tel


def stopped_with(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Outcome:
    """Solve with another word of HiGHS on the integer program."""
    solve_as_usual = Model.solve

    def changed(self: Model, time_limit_s: float | None = None) -> Solution:
        solution = solve_as_usual(self, time_limit_s)
        if solution.dual_bound is None:
            return solution
        return replace(solution, **changes)

    monkeypatch.setattr(Model, "solve", changed)
    return milp(INSTANCE, Options())


INSTANCE = tight(7, 2)
LEAST = solve_relaxation(INSTANCE).bound
LISTS = METHODS["best-list"].solve(INSTANCE, Options()).schedule.tel


def test_nothing_found_falls_back_to_the_start(monkeypatch):
    """HiGHS without a point and without a bound leaves both as they were."""
    status = SolverStatus.TIME_LIMIT
    outcome = stopped_with(monkeypatch, status=status, x=None, dual_bound=None)
    assert outcome.schedule.tel == LISTS
    assert outcome.lower_bound == LEAST < LISTS
    assert not outcome.complete


def test_a_point_that_the_checker_refuses_is_not_used(monkeypatch):
    """Everything at once does not fit."""
    usual = module._schedule

    def all_at_once(instance, request, start, x):
        found = usual(instance, request, start, x)
        return type(found)(instance, instance.arrival)

    monkeypatch.setattr(module, "_schedule", all_at_once)
    outcome = milp(INSTANCE, Options())
    assert outcome.schedule.tel == LISTS
    assert check(INSTANCE, outcome.schedule).feasible


@pytest.mark.parametrize(
    ("dual_bound", "proven"),
    [
        (LISTS - 2.0, LISTS - 2),
        (LISTS - 2 + 1e-7, LISTS - 2),  # that much is rounding
        (LISTS - 2 + 1e-2, LISTS - 1),  # that much is not: TEL is an integer
        (LISTS - 2 - 1e-2, LISTS - 2),
        (LISTS + 50.0, LISTS),  # starts beyond the schedule's TEL were left out
        (0.0, LEAST),
    ],
)
def test_the_bound_is_rounded_on_the_safe_side(monkeypatch, dual_bound, proven):
    """Up to the next integer, but not over rounding errors."""
    outcome = stopped_with(
        monkeypatch, status=SolverStatus.TIME_LIMIT, x=None, dual_bound=dual_bound
    )
    assert outcome.lower_bound == max(proven, LEAST)
    assert outcome.complete == (outcome.lower_bound == LISTS)


def test_an_interrupt_during_the_relaxation_ends_it(monkeypatch):
    """Ctrl-C means stop, not go on with the next step."""
    usual = module.solve_relaxation

    def interrupted(instance, **options):
        return replace(usual(instance, **options), status=SolverStatus.INTERRUPTED)

    monkeypatch.setattr(module, "solve_relaxation", interrupted)
    monkeypatch.setattr(module, "_solve", None)
    outcome = milp(INSTANCE, Options())
    assert (outcome.schedule.tel, outcome.lower_bound) == (LISTS, LEAST)
    assert not outcome.complete


def test_too_large_is_refused_unless_nobody_asked(monkeypatch):
    """A comparison of all methods goes on with what the list rules found."""
    monkeypatch.setattr(module, "MAX_NONZEROS", 10)
    outcome = milp(INSTANCE, Options())
    assert (outcome.schedule.tel, outcome.lower_bound) == (LISTS, LEAST)
    assert not outcome.complete
    with pytest.raises(TooLargeError, match=r"more than 10; .*dual"):
        milp(tight(module.MAX_REQUESTS + 4, 1), Options())


def test_arrivals_in_the_far_future():
    """The relaxation has no place for so many steps, the integer program does."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10, [0, 10**12, 10**12])
    outcome = milp(instance, Options())
    assert outcome.complete
    assert check(instance, outcome.schedule).feasible
    assert outcome.schedule.tel == 3 + 2 + 1


def test_nothing_to_do():
    """No requests: optimal, 0."""
    outcome = milp(Instance([], [], 5), Options())
    assert (outcome.schedule.tel, outcome.lower_bound) == (0, 0)
    assert outcome.complete
