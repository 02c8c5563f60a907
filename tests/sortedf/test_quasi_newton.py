"""Projected L-BFGS against scipy, which does the same more slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sortedf.quasi_newton import minimise
from tests.strategies import examples


@examples(30)
@given(st.integers(1, 30), st.integers(0, 10**6))
def test_convex_quadratics_with_bounds(n, seed):
    """As low as scipy's L-BFGS-B, and never below 0."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n)) / np.sqrt(n)
    matrix = root @ root.T + 0.1 * np.eye(n)
    target = rng.normal(size=n)

    def quadratic(x):
        return float(0.5 * x @ matrix @ x - target @ x), matrix @ x - target

    start = rng.random(n)
    mine = minimise(quadratic, start, iterations=500, tolerance=1e-14)
    theirs = minimize(
        quadratic, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * n
    )
    assert (mine >= 0).all()
    assert quadratic(mine)[0] == pytest.approx(theirs.fun, rel=1e-5, abs=1e-6)


def test_the_optimum_at_the_bound_is_found():
    """Everything is pushed to 0."""
    found = minimise(lambda x: (float(x.sum()), np.ones(5)), np.ones(5), iterations=50)
    assert found.tolist() == [0.0] * 5


def test_stopping_keeps_the_best_point():
    """No step is taken when the time is over, and the start is not changed."""
    start = np.ones(3)
    found = minimise(
        lambda x: (float(x @ x), 2 * x), start, iterations=50, stop=lambda: True
    )
    assert found.tolist() == start.tolist() == [1.0] * 3


def test_values_only_fall():
    """Backtracking never accepts a worse point, kinks or not."""
    seen = []

    def kinked(x):
        seen.append(float(np.abs(x - 0.3).sum()))
        return seen[-1], np.sign(x - 0.3)

    found = minimise(kinked, np.array([2.0, 1.0, 0.0]), iterations=100)
    assert float(np.abs(found - 0.3).sum()) == min(seen)


def test_time_is_looked_at_within_a_step():
    """One evaluation can take a second, and a step up to a dozen of them."""
    calls = []

    def uphill(x):  # the slope is a lie, so that no step is ever good
        calls.append(1)
        return float(-x.sum()), np.ones(3)

    minimise(uphill, np.ones(3), iterations=9, stop=lambda: len(calls) > 1)
    assert len(calls) == 2
