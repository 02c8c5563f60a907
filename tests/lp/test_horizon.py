"""How late starts can be: nothing optimal is later, and not much is allowed for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from lp.formulation import formulate
from lp.highs import Model
from lp.horizon import good_schedule, latest_starts, relaxed_horizon
from sortedf import Instance, bound, check
from tests import naive
from tests.strategies import engines, examples, instances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def optimum(instance: Instance, latest: NDArray[np.int64]) -> int:
    formulation = formulate(instance, latest)
    columns = formulation.columns(*formulation.all_starts())
    rows = formulation.row_lower, formulation.row_upper
    found = Model(columns, *rows, integer=True).solve().objective
    assert found is not None
    return round(found)


@examples(60)
@given(instances(max_requests=6, max_length=6, engine=engines()))
def test_a_longer_horizon_gives_the_same_optimum(instance):
    """Twice the longest latency that the limits leave, for every request."""
    latest = latest_starts(instance, good_schedule(instance).tel)
    longest = int((latest - instance.arrival).max())
    assert optimum(instance, latest) == optimum(instance, latest + longest + 5)


@examples(40)
@given(instances(max_requests=3, max_length=4, engine=engines()))
def test_every_optimal_schedule_keeps_the_limits(instance):
    """The proof is about all of them, so brute force looks at all of them."""
    best = naive.best_tel(instance)
    latest = latest_starts(instance, best)
    wait = best - int(instance.decode.sum())  # no request can wait longer
    ids = range(instance.num_requests)
    for waits in product(range(wait + 1), repeat=len(ids)):
        if sum(waits) != wait:
            continue
        start = {i: int(instance.arrival[i]) + waits[i] for i in ids}
        if naive.is_feasible(instance, start):
            assert all(start[i] <= latest[i] for i in ids)


@pytest.mark.parametrize(
    ("instance", "tel", "latest"),
    [
        # Never idle at the end: both run one after the other, whatever TEL is.
        (Instance([1, 1], [3, 5], 6), 99, [5, 3]),
        # Latency is limited: 8 steps of answers, so 2 steps of waiting.
        (Instance([1, 1], [3, 5], 6), 10, [2, 2]),
        # Each for its own: request 1 arrives last and can wait for all of request 0.
        (Instance([1, 1], [3, 5], 6, [0, 4]), 10, [2, 6]),
        (Instance([1, 1], [3, 5], 6, [0, 4]), 99, [9, 7]),
    ],
)
def test_each_limit_by_hand(instance, tel, latest):
    """The lesser of the two counts."""
    assert latest_starts(instance, tel).tolist() == latest


def test_limits_of_requests_far_apart():
    """Numbers near the largest allowed do not overflow."""
    length = 2**30 - 1
    instance = Instance([length] * 3, [length] * 3, 2**31 - 1, [0, 5, 2**52])
    schedule = good_schedule(instance)
    assert check(instance, schedule).feasible
    latest = latest_starts(instance, schedule.tel)
    assert (latest >= schedule.start).all()
    assert (latest - instance.arrival <= schedule.tel).all()


@examples(30)
@given(instances(engine=engines()))
def test_the_good_schedule_is_feasible(instance):
    """Whatever the engine's caps, and not below what is proven."""
    schedule = good_schedule(instance)
    assert check(instance, schedule).feasible
    assert schedule.tel >= bound(instance, "fluid").value
    assert relaxed_horizon(schedule) >= schedule.makespan
