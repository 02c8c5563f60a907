"""The list of doubling against its definition, and the choice of the shift."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, place, solve
from sortedf.methods import RULES
from sortedf.methods.doubling import SHIFTS, doubling_order
from sortedf.options import Options
from tests.strategies import instances


def naive_order(instance: Instance, first: Fraction, factor: int) -> list[int]:
    """Stage by stage, one request at a time, in fractions."""
    n, places = instance.num_requests, instance.engine.max_num_seqs
    prefill, decode = instance.prefill.tolist(), instance.decode.tolist()
    area = []
    for s, o in zip(prefill, decode, strict=True):
        held = sum(instance.engine.round_up(s + j) for j in range(1, o + 1))
        share = Fraction(held, instance.usable_kv)
        area.append(share if places is None else 2 * share + Fraction(o, places))
    per_step = 1 if places is None else 3
    order: list[int] = []
    tau = first
    while len(order) < n:
        used, stage = Fraction(0), []
        for i in sorted(range(n), key=lambda i: (area[i], i)):
            if decode[i] > tau:
                continue
            used += area[i]
            if used > per_step * tau:
                break
            stage.append(i)
        order += sorted(set(stage) - set(order), key=lambda i: (decode[i], i))
        tau *= factor
    return order


@given(
    instances(max_requests=12, arrivals=False),
    st.sampled_from([Fraction(1), Fraction(3, 2)]),
    st.sampled_from([None, 3]),
)
def test_order_is_its_definition(instance, first, places):
    """Limits that double, from 1 and from 1.5, with and without a cap on requests."""
    engine = EngineModel(instance.kv_budget, instance.engine.block_size, places)
    instance = Instance(instance.prefill, instance.decode, engine=engine)
    order = doubling_order(instance, float(first), 2.0)
    assert order.tolist() == naive_order(instance, first, 2)


def test_the_method_takes_the_best_shift():
    """No first limit gives a better placement than the method's list."""
    rng = np.random.default_rng(2)
    instance = Instance(rng.integers(1, 90, 60), rng.integers(1, 90, 60), 400)
    tels = [
        place(instance, doubling_order(instance, float(np.exp(k / SHIFTS)), np.e)).tel
        for k in range(SHIFTS)
    ]
    assert len(set(tels)) > 1
    assert solve(instance, "doubling", bound="none").tel == min(tels)


def test_large_volumes_are_no_overflow():
    """Lengths and volumes whose sum leaves 64 bits."""
    instance = Instance([2**30 - 1] * 8, [2**30] * 8, 2**31 - 1)
    order = doubling_order(instance, 1.0, 2.0)
    assert sorted(order.tolist()) == list(range(8))


@pytest.mark.parametrize("n", [0, 1])
def test_few(n):
    """No request, and one."""
    instance = Instance([1] * n, [1] * n, 5)
    assert RULES["doubling"](instance, Options()).tolist() == list(range(n))
