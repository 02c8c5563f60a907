"""Relaxation and integer program: against the text book, brute force and each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from lp.formulation import MAX_NONZEROS, refuse_too_large
from lp.highs import STATUSES, SolverError, SolverStatus, status_of
from lp.horizon import good_schedule, latest_starts
from lp.relaxation import solve_relaxation
from lp.textbook import textbook_model, textbook_optimum, write_model
from sortedf import Instance, Status, bound, check, solve
from sortedf.certificate import proven_bound
from sortedf.errors import MissingExtraError, OutputError, TooLargeError
from tests import naive
from tests.strategies import engines, instances

SMALL = {"max_requests": 4, "max_length": 5}


@settings(max_examples=60)
@given(instances(**SMALL, engine=engines()))
def test_milp_is_the_optimum_of_brute_force(instance):
    """With arrivals, blocks and caps: the same TEL as trying every start step."""
    result = solve(instance, "milp", bound="none")
    assert check(instance, result.schedule).feasible
    assert result.tel == naive.best_tel(instance)
    assert result.status is Status.OPTIMAL
    assert result.lower_bound == result.tel


@settings(max_examples=30)
@given(instances(**SMALL, engine=engines()))
def test_textbook_integer_program_has_the_same_optimum(instance):
    """The horizon contains an optimal schedule, and the rows are the model's."""
    model = textbook_model(instance, integer=True)
    assert round(textbook_optimum(model)) == naive.best_tel(instance)


@settings(max_examples=40)
@given(instances(max_requests=6, max_length=8))
def test_column_generation_solves_the_textbook_relaxation(instance):
    """The same optimum by PuLP, by generated columns, and by HiGHS on all of them."""
    horizon = good_schedule(instance).makespan + 3
    expected = textbook_optimum(textbook_model(instance, horizon))
    for solver in ("columns", "simplex"):
        found = solve_relaxation(instance, horizon=horizon, solver=solver)
        assert found.status is SolverStatus.OPTIMAL
        assert found.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=40)
@given(instances(max_requests=6, max_length=8, engine=engines()))
def test_the_reported_bound_is_proven_by_its_prices(instance):
    """Floating point only finds the prices; the bound is exact, and close to the LP."""
    found = solve_relaxation(instance)
    assert proven_bound(instance, found.certificate) == found.bound
    assert found.bound <= solve(instance, bound="none").tel
    assert found.objective is not None
    assert found.bound >= found.objective - 1e-3 * max(found.objective, 1)


@settings(max_examples=25)
@given(instances(max_requests=8, max_length=8))
def test_dual_is_close_to_the_relaxation_and_not_above(instance):
    """The climb ends within half a percent or one step of the LP, never above it."""
    optimum = solve_relaxation(instance).objective
    dual = bound(instance, "dual").value
    assert optimum is not None
    assert dual <= np.ceil(optimum - 1e-6)
    assert dual >= 0.995 * optimum - 1


def test_fractional_starts_are_a_distribution():
    """Weights of each request add up to 1, and no start is before the arrival."""
    rng = np.random.default_rng(0)
    instance = Instance(
        rng.integers(1, 60, 20), rng.integers(1, 30, 20), 150, rng.integers(0, 40, 20)
    )
    found = solve_relaxation(instance)
    sums = np.bincount(found.request, weights=found.weight)
    np.testing.assert_allclose(sums, 1, atol=1e-6)
    assert (found.start >= instance.arrival[found.request]).all()
    assert (found.mean_start >= instance.arrival - 1e-9).all()


@settings(max_examples=30)
@given(instances(**SMALL, engine=engines()))
def test_no_optimal_schedule_starts_after_the_latest_starts(instance):
    """A horizon twice as long gives the same optimum."""
    latest = latest_starts(instance, good_schedule(instance).tel)
    longest = int((latest + instance.decode).max()) * 2
    longer = textbook_optimum(textbook_model(instance, longest, integer=True))
    assert round(longer) == naive.best_tel(instance)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_exported_models_give_the_same_optimum(tmp_path, suffix):
    """HiGHS reads what was written, and nothing else is left in the folder."""
    import highspy

    instance = Instance([5, 6, 1, 4], [3, 2, 1, 5], 10, [0, 0, 2, 3])
    path = tmp_path / f"model{suffix}"
    write_model(instance, path, integer=True)
    assert list(tmp_path.iterdir()) == [path]
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(path))
    solver.run()
    value = solver.getInfo().objective_function_value
    assert round(value) == naive.best_tel(instance)


def test_exports_are_refused_with_a_reason(tmp_path):
    """Another suffix, or no such folder."""
    instance = Instance([5, 6], [3, 2], 10)
    with pytest.raises(ValueError, match=r"must end in \.lp or \.mps"):
        write_model(instance, tmp_path / "model.txt")
    with pytest.raises(OutputError, match="does not exist"):
        write_model(instance, tmp_path / "no" / "model.lp")


def test_a_horizon_that_is_too_short_is_infeasible():
    """Nobody calls that optimal."""
    instance = Instance([5, 6], [3, 2], 10)
    with pytest.raises(SolverError, match="infeasible"):
        textbook_optimum(textbook_model(instance, 3))
    found = solve_relaxation(instance, horizon=3)
    assert found.status is not SolverStatus.OPTIMAL
    assert found.objective is None
    assert found.bound <= naive.best_tel(instance)


def test_too_large_is_refused_before_anything_is_built():
    """The message names the bound that needs no matrix."""
    n = 3000
    instance = Instance([100] * n, [2000] * n, 5000)
    with pytest.raises(TooLargeError, match="dual"):
        solve_relaxation(instance)
    with pytest.raises(TooLargeError, match="dual"):
        refuse_too_large(MAX_NONZEROS + 1)


def test_unknown_states_are_never_optimal():
    """Only one name means optimal; one that nobody knows is unknown."""
    optimal = [name for name, is_ in STATUSES.items() if is_ is SolverStatus.OPTIMAL]
    assert optimal == ["kOptimal"]
    assert status_of("kSomethingNew") is SolverStatus.UNKNOWN


def test_unknown_solver_lists_the_known_ones():
    """As everywhere."""
    with pytest.raises(ValueError, match="unknown solver 'magic'; choose one of: col"):
        solve_relaxation(Instance([1], [1], 2), solver="magic")


def documents(n: int) -> Instance:
    rng = np.random.default_rng(7)
    long = rng.random(n) < 0.4
    prefill = np.where(long, rng.integers(60, 120, n), rng.integers(1, 30, n))
    return Instance(prefill, rng.integers(5, 60, n), 300)


def test_no_time_is_enough_for_a_feasible_schedule():
    """With a limit of 0 the start is kept, with the bound that is there."""
    instance = documents(25)
    result = solve(instance, "milp", time_limit=0)
    assert check(instance, result.schedule).feasible
    assert result.lower_bound <= result.tel
    found = solve_relaxation(instance, time_limit_s=0)
    assert found.status is not SolverStatus.OPTIMAL
    assert found.bound <= result.tel


def test_a_time_limit_ends_the_integer_program():
    """Hard instances stop in time, with a true bound below the schedule."""
    instance = documents(40)
    result = solve(instance, "milp", time_limit=3, bound="none")
    assert result.runtime_s < 30
    assert check(instance, result.schedule).feasible
    assert result.lower_bound is None or result.lower_bound <= result.tel


def test_missing_highs_says_how_to_install_it(monkeypatch):
    """Not an ImportError from somewhere deep."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtraError, match="pip install highspy"):
        solve_relaxation(documents(10))


def test_empty_instance():
    """Nothing to solve."""
    assert solve_relaxation(Instance([], [], 5)).bound == 0
    assert solve(Instance([], [], 5), "milp").tel == 0
