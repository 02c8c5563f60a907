"""Bounds on other objectives: below every schedule, and where the known one is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import BOUNDS, Instance, solve
from sortedf.bounds import BoundOptions
from sortedf.bounds.objective import (
    makespan_bound,
    objective_bound,
    weighted_bound,
)
from sortedf.improve import Objective
from tests import naive
from tests.strategies import engines, examples, instances


@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
@examples(60)
def test_nothing_is_below(instance, data):
    """No schedule of any list, and no rotated list of starts."""
    n = instance.num_requests
    weight = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    weighted, makespan = Objective(weight=weight), Objective(makespan=True)
    assert objective_bound(instance, makespan) == makespan_bound(instance)
    assert objective_bound(instance, weighted) == weighted_bound(instance, weight)
    for method in ("fcfs", "lpt", "svf"):
        schedule = solve(instance, method, backfill=2, bound="none").schedule
        assert makespan_bound(instance) <= schedule.makespan
        assert weighted_bound(instance, weight) <= weighted.value(schedule)


@given(instances(engine=engines()))
def test_equal_weights_give_the_fluid_bound(instance):
    """That of TEL, up to its rounding of each request, and times the weight."""
    fluid = BOUNDS["fluid"].prove(instance, BoundOptions()).value
    ones = weighted_bound(instance, [1] * instance.num_requests)
    assert fluid <= ones <= fluid + 1
    sevens = weighted_bound(instance, [7] * instance.num_requests)
    assert 7 * (ones - 1) < sevens <= 7 * ones


@given(instances(max_requests=3, max_length=4))
@examples(30)
def test_weights_of_one_stay_below_the_optimum(instance):
    """Exhaustive search."""
    n = instance.num_requests
    assert weighted_bound(instance, [1] * n) <= naive.best_tel(instance)


def test_makespan_counts_what_comes_late():
    """Volume behind an arrival, and a request's own steps."""
    assert makespan_bound(Instance([1, 1], [1, 9], 100)) == 9
    assert makespan_bound(Instance([9, 9], [1, 1], 10, [0, 50])) == 51
    assert makespan_bound(Instance([9] * 4, [1] * 4, 10, [0, 50, 50, 50])) == 53
    assert makespan_bound(Instance([], [], 5)) == 0


def test_a_cap_does_not_end_the_search_at_the_bound():
    """A schedule at the bound that misses the cap is not optimal."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10)
    result = solve(instance, objective=Objective(max_latency=1))
    assert result.over_cap > 0
    assert result.status != "optimal"
    met = solve(instance, objective=Objective(max_latency=50))
    assert (met.over_cap, met.status) == (0, "optimal")


@pytest.mark.parametrize("method", ["svf", "milp", "sorted-f"])
def test_methods_for_tel_alone_refuse(method):
    """In place of ignoring what was asked for."""
    instance = Instance(np.ones(3), np.ones(3), 4)
    with pytest.raises(ValueError, match=r"minimises TEL alone; .* improve"):
        solve(instance, method, objective=Objective(makespan=True))
