"""The relaxation: the text book's optimum, its dual, and a bound that is exact."""

from __future__ import annotations

import os
import signal
import threading
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp import relaxation as module
from lp.highs import Model, Solution, SolverStatus
from lp.horizon import good_schedule
from lp.relaxation import lp_bound, solve_relaxation
from lp.textbook import textbook_model, textbook_optimum
from sortedf import BOUNDS, EngineModel, Instance, bound, generate
from sortedf.bounds import BoundOptions
from sortedf.certificate import proven_bound
from sortedf.errors import TooLargeError
from tests import naive
from tests.lp.test_column_generation import crowd
from tests.strategies import engines, examples, instances

if TYPE_CHECKING:
    from collections.abc import Sequence


def dual_value(instance: Instance, prices: Sequence[float]) -> Fraction:
    """`D(lambda)` by its definition, in fractions, for every start that could pay."""
    price = [Fraction(value) for value in prices]
    total = -instance.usable_kv * sum(price, Fraction(0))
    for i in range(instance.num_requests):
        s, o = int(instance.prefill[i]), int(instance.decode[i])
        a = int(instance.arrival[i])
        held = [instance.engine.round_up(s + j) for j in range(1, o + 1)]
        total += min(
            t + o - a + sum(p * w for p, w in zip(price[t : t + o], held, strict=False))
            for t in range(a, max(a, len(price)) + 1)
        )
    return total


@examples(60)
@given(
    instances(max_requests=6, max_length=8, engine=engines()),
    st.sampled_from(["columns", "simplex"]),
)
def test_primal_and_dual_meet(instance, solver):
    """The objective is `D` of the prices, for every start without a horizon."""
    found = solve_relaxation(instance, solver=solver)
    assert found.status is SolverStatus.OPTIMAL
    assert found.objective is not None
    value = dual_value(instance, found.prices.tolist())
    assert float(value) == pytest.approx(found.objective, rel=1e-6)
    assert value <= found.bound + Fraction(1, 10**6)
    assert found.bound <= value + 1 + Fraction(1, 10**6)
    assert proven_bound(instance, found.certificate) == found.bound


@pytest.mark.parametrize("solver", ["columns", "simplex"])
def test_a_horizon_that_is_too_short_is_made_longer(solver):
    """The usual horizon is 9 here; with it the prices proved 17, and 56/3 is right."""
    instance = Instance([1] * 5, [1, 1, 5, 5, 5], kv_budget=16)
    found = solve_relaxation(instance, solver=solver)
    assert found.objective == pytest.approx(56 / 3)
    assert found.bound == 19
    assert solve_relaxation(instance, solver=solver, horizon=9).bound == 17


@examples(60)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_the_bound_is_not_above_the_optimum(instance):
    """Caps only raise the optimum; the bound leaves them out."""
    found = lp_bound(instance, BoundOptions())
    assert found.value <= naive.best_tel(instance)
    free = instance.replace(
        engine=EngineModel(instance.kv_budget, instance.engine.block_size)
    )
    assert found.value == lp_bound(free, BoundOptions()).value


@examples(30)
@given(instances(max_requests=6, max_length=8), st.integers(0, 5))
def test_the_optimum_is_that_of_the_text_book(instance, later):
    """By PuLP, for the same horizon."""
    horizon = good_schedule(instance).makespan + later
    expected = textbook_optimum(textbook_model(instance, horizon))
    found = solve_relaxation(instance, horizon=horizon)
    assert found.objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solver", ["simplex", "primal-simplex", "ipm", "pdlp"])
def test_every_solver_of_highs_gives_the_same(solver):
    """Prices from any of them prove nearly the same bound."""
    instance = crowd(14, 3)
    best = solve_relaxation(instance)
    found = solve_relaxation(instance, solver=solver)
    assert found.status is SolverStatus.OPTIMAL
    assert found.objective == pytest.approx(best.objective, rel=1e-4)
    assert abs(found.bound - best.bound) <= 1


@examples(30)
@given(instances(max_requests=8, max_length=8, engine=engines()))
def test_fractional_starts_are_a_solution(instance):
    """Weights add up to 1, the budget is kept in every step, and the cost is right."""
    found = solve_relaxation(instance)
    n = instance.num_requests
    sums = np.bincount(found.request, weights=found.weight, minlength=n)
    np.testing.assert_allclose(sums, 1, atol=1e-6)
    assert (found.start >= instance.arrival[found.request]).all()
    used: dict[int, float] = {}
    cost = 0.0
    for i, t, x in zip(found.request, found.start, found.weight, strict=True):
        o = int(instance.decode[i])
        cost += x * (t + o - instance.arrival[i])
        for j in range(1, o + 1):
            held = instance.engine.round_up(int(instance.prefill[i]) + j)
            used[int(t) + j] = used.get(int(t) + j, 0.0) + x * held
    assert max(used.values()) <= instance.usable_kv * (1 + 1e-6)
    assert cost == pytest.approx(found.objective, rel=1e-6)
    by_request = zip(found.request, found.start, found.weight, strict=True)
    mean = np.zeros(n)
    for i, t, x in by_request:
        mean[i] += t * x
    np.testing.assert_allclose(found.mean_start, mean, rtol=1e-5, atol=1e-5)


def test_a_mix_of_real_lengths():
    """Hundreds of tokens, 16,492 of budget: exact, and above the fluid bound."""
    instance, _ = generate("mix", 60, seed=1).to_instance(16492)
    found = solve_relaxation(instance)
    assert found.status is SolverStatus.OPTIMAL
    assert found.bound == np.ceil(found.objective - 1e-4)
    assert bound(instance, "fluid").value < found.bound <= good_schedule(instance).tel
    assert found.runtime_s > 0


def test_the_horizon_does_not_touch_the_bound():
    """A short one only makes the prices, and so the bound, worse."""
    instance = crowd(14, 3)
    free = solve_relaxation(instance)
    full = good_schedule(instance).makespan
    for horizon in (full // 2, full, 3 * full):
        found = solve_relaxation(instance, horizon=horizon)
        assert found.bound <= free.bound
        assert proven_bound(instance, found.certificate) == found.bound


def test_a_horizon_that_is_too_short_is_infeasible():
    """What is left is the sum of the answers."""
    instance = Instance([5, 6], [3, 2], 10)
    for horizon in (0, 2, 4):
        found = solve_relaxation(instance, horizon=horizon)
        assert found.status is SolverStatus.INFEASIBLE
        assert found.objective is None
        assert found.mean_start is None
        assert found.bound == 5


@pytest.mark.parametrize("solver", ["columns", "simplex"])
def test_no_time_is_a_weaker_bound(solver):
    """The sum of the answers, and the state says why."""
    instance = crowd(30, 1)
    found = solve_relaxation(instance, solver=solver, time_limit_s=0.0)
    assert found.status is SolverStatus.TIME_LIMIT
    assert found.message == "Time limit reached"
    assert found.objective is None
    assert found.bound == int(instance.decode.sum())
    assert lp_bound(instance, BoundOptions(time_limit_s=0.0)).value == found.bound


def test_ctrl_c_gives_the_best_bound_so_far(monkeypatch):
    """SIGINT while HiGHS is busy with a later round; here in its second one."""
    instance = crowd(60, 5)
    solve, rounds = Model.solve, []

    def slow(self: Model, time_limit_s: float | None = None) -> Solution:
        rounds.append(time_limit_s)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        if len(rounds) == 2:
            run = self._highs.run
            monkeypatch.setattr(
                self._highs, "run", lambda: (timer.start(), timer.join(), run())[2]
            )
        return solve(self, time_limit_s)

    monkeypatch.setattr(Model, "solve", slow)
    found = solve_relaxation(instance)
    assert len(rounds) == 2
    assert found.status is SolverStatus.INTERRUPTED
    assert int(instance.decode.sum()) < found.bound
    assert found.bound <= good_schedule(instance).tel
    assert proven_bound(instance, found.certificate) == found.bound


def test_limits_of_size(monkeypatch):
    """The default is more for generated columns; both can be raised."""
    instance = crowd(14, 3)
    monkeypatch.setattr(module, "MAX_NONZEROS", 100)
    with pytest.raises(TooLargeError, match=r"more than 100; .*dual"):
        solve_relaxation(instance, solver="simplex")
    assert solve_relaxation(instance).status is SolverStatus.OPTIMAL
    found = solve_relaxation(instance, solver="simplex", max_nonzeros=10**7)
    assert found.status is SolverStatus.OPTIMAL
    with pytest.raises(TooLargeError, match=r"more than 100; .*dual"):
        solve_relaxation(instance, max_nonzeros=100)


def test_arrivals_in_the_far_future_are_too_large():
    """Prices would need an entry for each step until then."""
    instance = Instance([5, 6], [3, 2], 10, [0, 10**12])
    with pytest.raises(TooLargeError, match="dual"):
        solve_relaxation(instance)


def test_unknown_solver_lists_the_known_ones():
    """As everywhere."""
    with pytest.raises(
        ValueError, match="unknown solver 'magic'; choose one of: colum"
    ):
        solve_relaxation(Instance([1], [1], 2), solver="magic")


def test_it_is_a_bound_by_name():
    """With its certificate, progress and time limit like the others."""
    assert BOUNDS["lp"].prove is lp_bound
    seen: list[int] = []
    instance = crowd(30, 1)
    found = bound(instance, "lp", progress=lambda value, total: seen.append(value))
    assert found.method == "lp"
    assert found.certificate is not None
    assert proven_bound(instance, found.certificate) == found.value == seen[-1]


@pytest.mark.parametrize("solver", ["columns", "simplex"])
def test_nothing_to_relax(solver):
    """No requests: optimal, 0."""
    found = solve_relaxation(Instance([], [], 5), solver=solver)
    assert found.status is SolverStatus.OPTIMAL
    assert (found.objective, found.bound) == (0.0, 0)
    assert found.mean_start is not None
    assert len(found.mean_start) == 0
