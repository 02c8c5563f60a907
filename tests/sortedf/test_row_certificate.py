"""Rounded rows prove exactly the fluid bound of their formula."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance
from sortedf.arrays import MAX_TOKENS
from sortedf.certificate import instance_hash, proven_bound
from sortedf.errors import CertificateError
from sortedf.row_certificate import CHUNK, RowCertificate
from tests.strategies import engines, instances


def prove(instance, divisor, weight, places=0, tokens=0):
    rows = (np.array(divisor, np.int64), np.array(weight, np.int64))
    certificate = RowCertificate(instance_hash(instance), 0, *rows, places, tokens)
    return proven_bound(instance, certificate)


def fluid(instance, rows, places=0, tokens=0):
    """Serve work unit by unit, the smallest volume first, and look at every unit."""
    engine = instance.engine
    block = instance.engine.block_size
    budget = instance.kv_budget // block

    def phi(w):
        return sum(
            weight * ((d - budget % d) * (w // d) + max(0, w % d - budget % d))
            for d, weight in rows
        )

    lengths = zip(instance.prefill.tolist(), instance.decode.tolist(), strict=True)
    work = [
        [
            phi(-(-(s + j) // block)) + places + tokens * (s if j == 1 else 1)
            for j in range(1, o + 1)
        ]
        for s, o in lengths
    ]
    arrival = instance.arrival.tolist()
    left = [sum(one) for one in work]
    served = [0] * len(left)
    speed, now = phi(budget), 0
    speed += places * (engine.max_num_seqs or 0)
    speed += tokens * (engine.max_batched_tokens or 0)
    while any(left):
        there = [i for i, w in enumerate(left) if w and arrival[i] * speed <= now]
        if there:
            i = min(there, key=lambda i: (sum(work[i]), i))
            left[i] -= 1
            served[i] += 2 * now + 1
        now += 1
    total = Fraction(0)
    for i, one in enumerate(work):
        o, volume = len(one), sum(one)
        total += o
        if volume:
            middle = sum(w * (2 * j - 1) for j, w in enumerate(one, 1))
            total += Fraction(served[i], 2 * volume * speed) - arrival[i]
            total -= Fraction(middle, 2 * volume)
    return ceil(total)


@given(instances(max_requests=4, max_length=4, engine=engines()), st.data())
def test_equals_unit_by_unit(instance, data):
    budget = instance.usable_kv // instance.engine.block_size
    row = st.tuples(st.integers(1, budget), st.integers(0, 2))
    rows = data.draw(st.lists(row, max_size=2))
    divisor, weight = [d for d, _ in rows], [w for _, w in rows]
    engine = instance.engine
    places = data.draw(st.integers(0, 2 if engine.max_num_seqs else 0))
    tokens = data.draw(st.integers(0, 2 if engine.max_batched_tokens else 0))
    assert prove(instance, divisor, weight, places, tokens) == (
        fluid(instance, rows, places, tokens)
    )


@pytest.mark.parametrize("late", range(12))
def test_a_smaller_request_that_arrives_later_goes_first(late):
    """The large one waits with what is left of it, in rows of KV and of both caps."""
    engine = EngineModel(13, max_num_seqs=2, max_batched_tokens=20)
    instance = Instance([5, 2, 1], [8, 2, 1], None, [0, late, late + 1], engine)
    for caps in ((0, 0), (3, 0), (0, 2), (3, 2)):
        assert prove(instance, [13, 5], [1, 2], *caps) == (
            fluid(instance, [(13, 1), (5, 2)], *caps)
        )


@pytest.mark.parametrize(
    ("engine", "caps", "message"),
    [
        (EngineModel(13), (1, 0), "places = 1 but must be 0"),
        (EngineModel(13), (0, 1), "tokens = 1 but must be 0"),
        (EngineModel(13, max_num_seqs=9), (-1, 0), "places = -1 but must be 0 or more"),
        (EngineModel(13), (-1, 0), "places = -1 but must be 0"),
    ],
)
def test_weights_of_caps_that_prove_nothing_are_refused(engine, caps, message):
    instance = Instance([1], [2], None, None, engine)
    with pytest.raises(CertificateError, match=message):
        prove(instance, [13], [1], *caps)


@pytest.mark.parametrize("o", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_every_step_of_a_long_answer_counts(o):
    instance = Instance([3], [o], o + 3)
    held = range(4, o + 4)
    volume = sum(held)
    early = Fraction(sum(w * (2 * j - 1) for j, w in enumerate(held, 1)), 2 * volume)
    middle = Fraction(volume, 2 * (o + 3))
    assert prove(instance, [o + 3], [1]) == max(ceil(middle + o - early), 0)


def test_the_largest_numbers_fit():
    """A full chunk at the largest budget: sums in 64 bits equal exact ones."""
    s, o = MAX_TOKENS - CHUNK, CHUNK
    instance = Instance([s], [o], MAX_TOKENS)
    volume = sum(range(s + 1, s + o + 1))
    early = sum(w * (2 * j - 1) for j, w in enumerate(range(s + 1, s + o + 1), 1))
    middle = Fraction(volume, 2 * MAX_TOKENS)
    bound = ceil(middle + o - Fraction(early, 2 * volume))
    assert prove(instance, [MAX_TOKENS], [1]) == max(bound, 0) > 0
