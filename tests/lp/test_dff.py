"""Rounded rows: valid for every set that fits, and summed exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp.dff import RoundedRow, rounded_volume
from lp.fluid_dff import best_mixture, candidates, fluid_on
from sortedf import EngineModel, Instance, bound, check, generate, solve
from tests import naive
from tests.strategies import engines, examples, instances


@st.composite
def rows(draw: st.DrawFn, max_capacity: int = 60) -> RoundedRow:
    capacity = draw(st.integers(1, max_capacity))
    return RoundedRow(capacity, draw(st.integers(1, capacity)))


@given(rows(), st.data())
def test_what_fits_obeys_the_row(row, data):
    """Weights are drawn one by one as long as there is room."""
    room = row.capacity
    total = 0
    while room and data.draw(st.booleans()):
        w = data.draw(st.integers(0, room))
        total += int(row.weight(np.array([w]))[0])
        room -= w
    assert total <= row.limit


@pytest.mark.parametrize("capacity", [1, 2, 7, 12, 30])
def test_rows_are_superadditive(capacity):
    """All pairs of weights, all divisors: what the proof rests on."""
    x = np.arange(capacity + 1)
    fits = x[:, None] + x <= capacity
    for d in range(1, capacity + 1):
        row = RoundedRow(capacity, d)
        phi = row.weight(x)
        both = row.weight(x[:, None] + x)
        assert (phi[:, None] + phi <= both)[fits].all()
        assert (np.diff(phi) >= 0).all()
        assert phi[-1] == row.limit >= 1


def test_rows_count_large_requests():
    """M = 10, d = 4: of the requests with more than 10 / 3 tokens two run at once."""
    row = RoundedRow(10, 4)
    assert row.weight(np.array([2, 3, 4, 6, 8])).tolist() == [0, 1, 2, 2, 4]
    assert row.limit == 4
    same = RoundedRow(10, 10)
    assert same.weight(np.arange(11)).tolist() == list(range(11))


@given(instances(max_length=40, engine=engines()), st.data())
def test_volumes_are_their_sums(instance, data):
    """The closed forms equal the sums they stand for, blocks included."""
    block = instance.engine.block_size
    capacity = instance.usable_kv // block
    row = RoundedRow(capacity, data.draw(st.integers(1, capacity)))
    volume, moment = rounded_volume(instance, row)
    roughly, _ = rounded_volume(instance, row, exact=False)
    assert roughly.tolist() == volume.tolist()
    for i, (s, o) in enumerate(zip(instance.prefill, instance.decode, strict=True)):
        held = -(-(s + np.arange(1, o + 1)) // block)
        phi = row.weight(held).tolist()
        assert volume[i] == sum(phi)
        assert moment[i] == sum(p * (2 * j - 1) for j, p in enumerate(phi, 1))


@examples(80)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_no_sum_of_rows_gives_more_than_the_optimum(instance, data):
    """Any rows, any weights, arrivals and blocks; not only what ascent would choose."""
    known = candidates(instance.usable_kv // instance.engine.block_size)
    chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    mixture = [(row, data.draw(st.integers(1, 9))) for row in chosen]
    assert fluid_on(instance, mixture) <= naive.best_tel(instance)


def documents(n: int, budget: int) -> Instance:
    instance, _ = generate("documents", n, seed=1).to_instance(budget)
    return instance


@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("arrivals", [False, True])
def test_fluid_dff_is_above_fluid_and_below_schedules(arrivals, block):
    """Two or three documents at a time: 3 % more than the fluid bound."""
    instance = documents(120, 4224)
    instance = instance.replace(engine=EngineModel(4224, block_size=block))
    if arrivals:
        arrival = np.random.default_rng(0).integers(0, 5000, 120)
        instance = instance.replace(arrival=arrival)
    better = bound(instance, "fluid-dff").value
    assert better > 1.03 * bound(instance, "fluid").value
    for name in ("svf", "sorted-f", "auto"):
        assert (
            better <= check(instance, solve(instance, name, bound="none").schedule).tel
        )


def test_the_memory_row_alone_is_the_fluid_bound():
    """Where no rounding helps, the mixture is the memory row."""
    instance = documents(200, 16492)
    assert [row.divisor for row, _ in best_mixture(instance)] == [16492]
    assert bound(instance, "fluid-dff").value == bound(instance, "fluid").value


def test_numbers_beyond_64_bits():
    """Lengths near the limit give exact integers, not overflow."""
    length = 2**30 - 1
    instance = Instance([length] * 3, [length] * 3, 2**31 - 1)
    row = RoundedRow(2**31 - 1, 2**30)
    volume, _ = rounded_volume(instance, row)
    # r = 2^30 - 1, so phi(w) = w // d below 2 d; w passes d = 2^30 in its first step.
    assert volume.tolist() == [length] * 3
    assert bound(instance, "fluid-dff").value == 6 * length


def test_nothing_to_do():
    """No requests, no latency."""
    assert bound(Instance([], [], 5), "fluid-dff").value == 0
