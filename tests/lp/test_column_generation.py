"""Column generation: exact prices of starts, and the same optimum as all columns."""

from __future__ import annotations

import _thread
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp import column_generation
from lp.column_generation import PricedTime, generate_columns
from lp.formulation import Formulation, formulate
from lp.highs import Model, SolverStatus
from lp.horizon import good_schedule, relaxed_horizon
from sortedf import Instance
from tests.strategies import engines, examples, instances


def relaxed(instance: Instance) -> tuple[Formulation, np.ndarray]:
    """Give the relaxation of an instance and starts to begin with."""
    schedule = good_schedule(instance)
    latest = relaxed_horizon(schedule) - instance.decode
    return formulate(instance, latest, caps=False), schedule.start


def crowd(n: int, seed: int) -> Instance:
    """Chats and documents whose peaks are up to a quarter of the budget."""
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.3
    prefill = np.where(long, rng.integers(60, 120, n), rng.integers(1, 30, n))
    return Instance(prefill, rng.integers(1, 50, n), 680)


@given(
    instances(engine=engines()),
    st.lists(st.floats(0, 10), max_size=40),
    st.integers(0, 60),
)
def test_brackets_are_their_sums(instance, prices, step):
    """Prefix sums give what adding up the tokens step by step gives."""
    tables = PricedTime.of(instance, np.array(prices, dtype=np.float64))
    for i in range(instance.num_requests):
        s, o = int(instance.prefill[i]), int(instance.decode[i])
        start = int(instance.arrival[i]) + step
        expected = start + o - int(instance.arrival[i])
        for j in range(1, o + 1):
            if start + j <= len(prices):
                expected += prices[start + j - 1] * instance.engine.round_up(s + j)
        (found,) = tables.brackets(instance, i, np.array([start]))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-6)


@examples(40)
@given(instances(max_requests=8, max_length=8, engine=engines()))
def test_it_ends_with_the_optimum_over_all_starts(instance):
    """No start without a column could improve the program."""
    formulation, incumbent = relaxed(instance)
    found = generate_columns(formulation, incumbent)
    whole = Model(
        formulation.columns(*formulation.all_starts()),
        formulation.row_lower,
        formulation.row_upper,
    ).solve()
    assert found.status is SolverStatus.OPTIMAL
    assert found.solution is not None
    assert found.solution.objective == pytest.approx(whole.objective, rel=1e-6)


def test_few_columns_are_enough(monkeypatch):
    """And one start of each request in a round instead of thirty changes nothing."""
    instance = crowd(50, 1)
    formulation, incumbent = relaxed(instance)
    many = generate_columns(formulation, incumbent)
    monkeypatch.setattr(column_generation, "PER_ROUND", 1)
    one = generate_columns(formulation, incumbent)
    assert many.solution is not None
    assert one.solution is not None
    assert one.solution.objective == pytest.approx(many.solution.objective, rel=1e-6)
    pairs = list(zip(many.request.tolist(), many.start.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == len(many.solution.x)
    assert len(pairs) < 0.3 * len(formulation.all_starts()[0])


def test_progress_is_a_bound_that_reaches_the_optimum():
    """Called after each round with the best so far, rounded up."""
    formulation, incumbent = relaxed(crowd(50, 2))
    seen: list[tuple[int, int]] = []
    found = generate_columns(
        formulation, incumbent, progress=lambda *call: seen.append(call)
    )
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert found.solution is not None
    assert seen[-1] == (math.ceil(found.solution.objective - 1e-3), 0)


def test_ctrl_c_between_solves_keeps_the_last_round():
    """While Python looks for columns, too."""
    formulation, incumbent = relaxed(crowd(50, 2))

    def press(bound: int, total: int) -> None:
        _thread.interrupt_main()

    found = generate_columns(formulation, incumbent, progress=press)
    assert found.status is SolverStatus.INTERRUPTED
    assert found.solution is not None
    assert len(found.solution.x) == len(found.request) == len(found.start)
    assert found.prices.any()


def test_no_time_no_round():
    """Then there is no solution, and there are no prices."""
    formulation, incumbent = relaxed(crowd(50, 2))
    found = generate_columns(formulation, incumbent, time_limit_s=0.0)
    assert found.status is SolverStatus.TIME_LIMIT
    assert found.message == "Time limit reached"
    assert found.solution is None
    assert len(found.request) == len(found.start) == len(found.prices) == 0
