"""The interface to HiGHS: its states, its errors, its limits, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import highspy
import numpy as np
import pytest
from highspy import HighsStatus

from lp.formulation import formulate
from lp.highs import (
    FAILURES,
    STATUSES,
    Columns,
    Model,
    SolverError,
    SolverStatus,
    silent_highs,
    status_of,
)
from lp.horizon import good_schedule, latest_starts
from sortedf import Instance
from sortedf.errors import MissingExtraError, SortedfError

NONE = float("inf")


def columns(cost: list[float], matrix: list[list[float]]) -> Columns:
    """Columns of a matrix that is written by rows."""
    dense = np.array(matrix, dtype=np.float64)
    m = dense.shape[1]
    return Columns(
        cost=np.array(cost, dtype=np.float64),
        begin=np.arange(m + 1, dtype=np.int32) * len(dense),
        row=np.tile(np.arange(len(dense), dtype=np.int32), m),
        value=dense.T.ravel(),
    )


def small_model(**options: object) -> Model:
    """Minimise x + 2 y with x + y = 1 and x <= 1/4: 7/4, prices 2 and -1."""
    data = columns([1, 2], [[1, 1], [1, 0]])
    return Model(data, np.array([1, -NONE]), np.array([1, 0.25]), **options)


def endless_model() -> tuple[Model, float]:
    """Give an integer program that takes minutes, and the value it begins with."""
    rng = np.random.default_rng(1)
    prefill, decode = rng.integers(1, 30, (2, 16))
    instance = Instance(prefill, decode, 2 * int((prefill + decode).max()))
    schedule = good_schedule(instance)
    formulation = formulate(instance, latest_starts(instance, schedule.tel))
    request, start = formulation.all_starts()
    model = Model(
        formulation.columns(request, start),
        formulation.row_lower,
        formulation.row_upper,
        integer=True,
        presolve=False,
    )
    model.start_from((start == schedule.start[request]).astype(np.float64))
    return model, float(schedule.tel)


def press_ctrl_c(after_s: float) -> threading.Timer:
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_every_state_of_highs_has_a_meaning():
    """All states of the installed HiGHS are in the tables, in one of them each."""
    names = set(highspy.HighsModelStatus.__members__)
    assert names == set(STATUSES) | FAILURES
    assert not set(STATUSES) & FAILURES


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("kOptimal", "optimal"),
        ("kInfeasible", "infeasible"),
        ("kUnbounded", "unbounded"),
        ("kTimeLimit", "time_limit"),
        ("kInterrupt", "interrupted"),
        ("kHighsInterrupt", "interrupted"),
        ("kIterationLimit", "limit"),
        ("kObjectiveTarget", "limit"),
        ("kUnboundedOrInfeasible", "unknown"),
        ("kModelEmpty", "unknown"),
        ("kUnknown", "unknown"),
        ("kNeverHeardOfIt", "unknown"),
    ],
)
def test_what_the_states_mean(name, status):
    """Whatever is not surely something else is unknown."""
    assert status_of(name) == status


@pytest.mark.parametrize("solver", ["simplex", "primal-simplex", "ipm", "pdlp"])
@pytest.mark.parametrize("presolve", [True, False])
def test_each_solver_finds_values_and_prices(solver, presolve):
    """The dual of a binding row <= is negative: relaxing it lowers the objective."""
    solution = small_model(solver=solver, presolve=presolve).solve()
    assert solution.status is SolverStatus.OPTIMAL
    assert solution.message == "Optimal"
    assert solution.objective == pytest.approx(1.75, abs=1e-5)
    np.testing.assert_allclose(solution.x, [0.25, 0.75], atol=1e-5)
    np.testing.assert_allclose(solution.row_dual, [2, -1], atol=1e-5)
    assert solution.dual_bound is None
    assert not solution.interrupted


def test_added_columns_take_part():
    """A cheap third variable for the first row takes what is left."""
    model = small_model()
    assert model.solve().objective == pytest.approx(1.75)
    model.add(columns([0.5, 9], [[1, 1], [0, 0]]))
    solution = model.solve()
    assert solution.objective == pytest.approx(0.5)
    np.testing.assert_allclose(solution.x, [0, 0, 1, 0], atol=1e-9)


def test_integer_programs_have_a_bound_and_no_prices():
    """Binary: x = 0, y = 1."""
    solution = small_model(integer=True).solve()
    assert solution.status is SolverStatus.OPTIMAL
    assert (solution.objective, solution.dual_bound) == (2.0, 2.0)
    assert solution.x is not None
    assert solution.x.tolist() == [0.0, 1.0]
    assert solution.row_dual is None


@pytest.mark.parametrize("integer", [True, False])
def test_infeasible(integer):
    """x + y = 1 and x + y <= 1/2."""
    data = columns([1, 1], [[1, 1], [1, 1]])
    rows = np.array([1, -NONE]), np.array([1, 0.5])
    solution = Model(data, *rows, integer=integer).solve()
    assert solution.status is SolverStatus.INFEASIBLE
    assert solution.message == "Infeasible"
    assert solution.x is None
    assert solution.objective is None


def test_unbounded_is_not_optimal():
    """Minimise -x with nothing in its way."""
    data = columns([-1], [[0]])
    solution = Model(data, np.array([-NONE]), np.array([1.0]), presolve=False).solve()
    assert solution.status is SolverStatus.UNBOUNDED


def test_no_time_is_a_time_limit():
    """Nothing but the start is there, and HiGHS says why."""
    model, value = endless_model()
    solution = model.solve(0.0)
    assert solution.status is SolverStatus.TIME_LIMIT
    assert solution.message == "Time limit reached"
    assert solution.objective == value
    assert solution.dual_bound is None or solution.dual_bound <= value
    linear = small_model().solve(-1.0)
    assert linear.status is not SolverStatus.OPTIMAL or linear.objective == 1.75


def test_each_solve_has_its_own_time_limit():
    """HiGHS adds up the time of all runs: a second one would get nothing."""
    model, value = endless_model()
    for _ in range(2):
        began = time.perf_counter()
        solution = model.solve(0.5)
        assert 0.4 < time.perf_counter() - began < 10
        assert solution.status is SolverStatus.TIME_LIMIT
        assert solution.objective <= value


def test_ctrl_c_gives_what_there_is():
    """One SIGINT ends HiGHS without an exception; afterwards it can go on."""
    model, value = endless_model()
    timer = press_ctrl_c(0.7)
    began = time.perf_counter()
    solution = model.solve(60)
    timer.join()
    assert time.perf_counter() - began < 20
    assert solution.interrupted
    assert solution.status is SolverStatus.INTERRUPTED
    assert solution.objective <= value
    again = model.solve(0.1)
    assert not again.interrupted
    assert again.status is SolverStatus.TIME_LIMIT


def test_ctrl_c_twice_is_an_exception(monkeypatch):
    """Who does not want to wait for HiGHS need not: here it never stops by itself."""
    model, _ = endless_model()
    monkeypatch.setattr(model, "_highs", Sleeper())
    timers = [press_ctrl_c(0.3), press_ctrl_c(0.6)]
    with pytest.raises(KeyboardInterrupt):
        model.solve()
    for timer in timers:
        timer.join()


class Sleeper:
    """A HiGHS that hears nothing for a while."""

    def setOptionValue(self, name: str, value: object) -> object:
        return HighsStatus.kOk

    def run(self) -> object:
        time.sleep(2)
        return HighsStatus.kOk


def test_highs_says_what_is_wrong_with_a_program():
    """A row that does not exist, in HiGHS's own words."""
    data = columns([1], [[1], [1]])
    with pytest.raises(SolverError, match=r"HiGHS failed .*illegal index") as caught:
        Model(data, np.array([1.0]), np.array([1.0]))
    assert isinstance(caught.value, SortedfError)


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_a_state_of_error_is_an_exception(monkeypatch, name):
    """Nothing that HiGHS says after an error is used."""
    model = small_model()
    state = getattr(highspy.HighsModelStatus, name)
    monkeypatch.setattr(model._highs, "getModelStatus", lambda: state)
    with pytest.raises(SolverError, match=r"HiGHS failed \(.* error\)"):
        model.solve()


def test_a_run_that_fails_is_an_exception(monkeypatch):
    """HiGHS's return value counts, too."""
    model = small_model()
    monkeypatch.setattr(model._highs, "run", lambda: HighsStatus.kError)
    with pytest.raises(SolverError, match="HiGHS failed"):
        model.solve()


def test_solvers_are_chosen_by_name():
    """An unknown one is answered with the list, one that is not built in with why."""
    with pytest.raises(ValueError, match="unknown solver 'magic'; choose one of: simp"):
        small_model(solver="magic")
    has_hipo = silent_highs().setOptionValue("solver", "hipo") == HighsStatus.kOk
    if has_hipo:
        assert small_model(solver="hipo").solve().objective == pytest.approx(1.75)
        return
    with pytest.raises(SolverError, match=r"HiPO solver .* unavailable"):
        small_model(solver="hipo")


def test_missing_highspy_says_how_to_install_it(monkeypatch):
    """One clear sentence instead of a traceback from deep inside."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtraError, match="pip install highspy"):
        silent_highs()


def test_nothing_is_printed():
    """Standard output belongs to the caller; HiGHS would print a banner there."""
    code = """
from sortedf import Instance
from lp.relaxation import solve_relaxation
from lp.textbook import textbook_model, textbook_optimum
instance = Instance([5, 6, 1], [3, 2, 1], kv_budget=10)
textbook_optimum(textbook_model(instance))
for solver in ("columns", "simplex", "primal-simplex", "ipm", "pdlp"):
    solve_relaxation(instance, solver=solver)
"""
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
    assert (found.stdout, found.stderr) == ("", "")


def test_other_users_of_highs_do_not_matter():
    """HiGHS fixes its number of threads in a process thread with the first run."""
    other = highspy.Highs()
    other.silent()
    other.addVar(0, 1)
    for threads in (0, 2):
        other.setOptionValue("threads", threads)
        other.run()
        assert small_model().solve().status is SolverStatus.OPTIMAL
