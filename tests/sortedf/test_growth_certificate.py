"""Growth rows prove exactly what their formula says, start by start."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import Instance
from sortedf.arrays import MAX_TOKENS
from sortedf.certificate import instance_hash, proven_bound
from sortedf.errors import CertificateError
from sortedf.growth_certificate import CHUNK, MAX_HORIZON, GrowthCertificate
from tests.strategies import engines, instances


def certificate(instance, bits, theta, horizon, price):
    numbers = (np.array(horizon, np.int64), np.array(price, np.int64))
    return GrowthCertificate(instance_hash(instance), 0, bits, theta, *numbers)


def formula(instance, bits, theta, horizon, price):
    """Evaluate the formula at the head of the file, with every start in turn."""
    last = len(price) + max(horizon, default=0)
    rows = list(zip(range(1, len(price) + 1), price, horizon, strict=True))

    def reward(c):
        return instance.usable_kv * sum(
            nu * max(0, h - (c - t)) for t, nu, h in rows if t <= c
        )

    def bracket(s, o, a, start):
        cost = (start + o - a) * 2**bits - reward(start + o)
        for t, nu, h in rows:
            held = s + t - start
            if start < t <= start + o:
                cost += nu * (theta * held + h * min(theta, held))
        return cost

    total = -theta * instance.usable_kv * sum(price)
    requests = (instance.prefill, instance.decode, instance.arrival)
    for s, o, a in zip(*(x.tolist() for x in requests), strict=True):
        starts = range(a, max(a, last) + 1)
        total += min(bracket(s, o, a, start) for start in starts)
    return ceil(total / 2**bits)


@given(instances(max_requests=4, max_length=6, engine=engines()), st.data())
def test_equals_the_formula(instance, data):
    n = data.draw(st.integers(0, 12))
    price = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    horizon = data.draw(st.lists(st.integers(0, 7), min_size=n, max_size=n))
    numbers = (data.draw(st.integers(0, 4)), data.draw(st.integers(1, 15)))
    claim = certificate(instance, *numbers, horizon, price)
    assert proven_bound(instance, claim) == formula(instance, *numbers, horizon, price)


@pytest.mark.parametrize("free", [0, CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 700])
def test_every_start_of_a_long_list_counts(free):
    """All steps are dear but one, in which a request of one token starts."""
    instance = Instance([1], [1], 2)
    price = np.full(CHUNK + 701, 10**6)
    price[free] = 0
    claim = certificate(instance, 0, 1, np.zeros(len(price)), price)
    assert proven_bound(instance, claim) == free + 1 - 2 * int(price.sum())


def test_a_reward_alone_can_pay_for_a_later_start():
    """What is given back is more than the steps that are waited for it."""
    instance = Instance([1], [1], 2)
    horizon, price = [0] * 30, [0] * 30
    horizon[19], price[19] = 5, 3
    expected = formula(instance, 0, 1, horizon, price)
    assert proven_bound(instance, certificate(instance, 0, 1, horizon, price)) == (
        expected
    )
    assert expected < formula(instance, 0, 1, [0] * 30, price)


def limit(**change):
    """Prove with numbers that are just small enough, or one too large."""
    instance = Instance([1], [1], 2, change.pop("arrival", None))
    numbers = {"bits": 0, "theta": 1, "horizon": [0], "price": [0]} | change
    return proven_bound(instance, certificate(instance, **numbers))


@pytest.mark.parametrize(
    ("fits", "too_large"),
    [
        # (last << bits) with the last step 2: one of prices, one of the answer
        ({"bits": 61}, {"bits": 62}),
        # 2 + theta p (1 answer of 2 tokens)
        ({"price": [2**62 - 2]}, {"price": [2**62 - 1]}),
        (
            {"theta": MAX_TOKENS, "price": [(2**63 - 3) // (2 * MAX_TOKENS)]},
            {"theta": MAX_TOKENS, "price": [(2**63 - 3) // (2 * MAX_TOKENS) + 1]},
        ),
        ({"theta": MAX_TOKENS}, {"theta": MAX_TOKENS + 1}),
        # an arrival moves the last step
        (
            {"arrival": [9], "price": [2**62 - 6]},
            {"arrival": [9], "price": [2**62 - 5]},
        ),
        # last step 3; tokens pay (theta + H) p 2 = 4 p, the reward is H p M = 2 p
        (
            {"horizon": [1], "price": [(2**63 - 4) // 6]},
            {"horizon": [1], "price": [(2**63 - 4) // 6 + 1]},
        ),
        # last step 4; the larger H p of two rows counts, wherever it is
        (
            {"horizon": [1, 0], "price": [(2**63 - 5) // 6, 0]},
            {"horizon": [1, 0], "price": [(2**63 - 5) // 6 + 1, 0]},
        ),
        pytest.param(
            {"horizon": [MAX_HORIZON]},
            {"horizon": [MAX_HORIZON + 1]},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_64_bits_hold_is_taken(fits, too_large):
    limit(**fits)
    with pytest.raises(CertificateError, match=r"too large|a horizon is"):
        limit(**too_large)
