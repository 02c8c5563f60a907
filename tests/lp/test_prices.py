"""Prices: exact, valid whatever they are, and found fast."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp.prices import (
    COARSE,
    MAX_VALUE,
    Prices,
    bound_of,
    certify,
    dual_value,
    fixed_point,
)
from sortedf import EngineModel, Instance
from sortedf.certificate import proven_bound
from tests import naive
from tests.strategies import engines, examples, instances

pytestmark = pytest.mark.kernel

PRICES = st.lists(st.floats(0, 0.5), max_size=40)


def naive_dual(instance: Instance, price: list[Fraction]) -> Fraction:
    """D(lambda) straight from its definition, far beyond the end of the prices."""

    def at(step: int) -> Fraction:
        return price[step - 1] if 1 <= step <= len(price) else Fraction(0)

    total = -instance.usable_kv * sum(price, Fraction(0))
    triples = zip(
        instance.prefill.tolist(),
        instance.decode.tolist(),
        instance.arrival.tolist(),
        strict=True,
    )
    for s, o, a in triples:
        total += min(
            t
            + o
            - a
            + sum(at(t + j) * instance.engine.round_up(s + j) for j in range(1, o + 1))
            for t in range(a, max(a, len(price)) + 3)
        )
    return total


@given(instances(max_requests=6, engine=engines()), PRICES)
def test_dual_value_is_its_definition(instance, prices):
    """Block skipping and prefix sums change nothing, to the last bit."""
    fixed = fixed_point(instance, prices)
    start, value = dual_value(instance, fixed)
    exact = [Fraction(int(p), 2**fixed.scale_bits) for p in fixed.value]
    expected = naive_dual(instance, exact)
    assert Fraction(value, 2**fixed.scale_bits) == expected
    assert bound_of(fixed, value) == -(-expected.numerator // expected.denominator)
    assert (start >= instance.arrival).all()


def spiky(rng, steps=1500):
    """Prices with free steps everywhere: only windows of few steps can be skipped."""
    prices = rng.random(steps) ** 6 * np.linspace(0.3, 0, steps)
    prices[rng.random(steps) < 0.3] = 0
    return prices


def level(rng, steps=1500):
    """Prices that hardly change for hundreds of steps: whole windows are skipped."""
    levels = np.repeat(rng.random(-(-steps // COARSE)), COARSE)[:steps]
    return 0.1 * levels + 1e-4 * rng.random(steps)


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.sampled_from([spiky, level]))
def test_skipping_blocks_is_exact_over_long_horizons(seed, block, draw_prices):
    """Thousands of steps: the same starts as trying every one."""
    rng = np.random.default_rng(seed)
    prices = draw_prices(rng)
    n = 8
    instance = Instance(
        rng.integers(1, 50, n), rng.integers(1, 200, n), 300, rng.integers(0, 900, n)
    )
    instance = instance.replace(engine=EngineModel(300, block_size=block))
    fixed = fixed_point(instance, prices)
    start, _ = dual_value(instance, fixed)
    price = np.concatenate([fixed.value, np.zeros(300, dtype=np.int64)])
    for i in range(n):
        s, o, a = (
            int(array[i])
            for array in (instance.prefill, instance.decode, instance.arrival)
        )
        held = -(-(s + np.arange(1, o + 1)) // block) * block
        brackets = [
            ((t + o) << fixed.scale_bits) + int(price[t : t + o] @ held)
            for t in range(a, 1501)
        ]
        assert start[i] == a + int(np.argmin(brackets))


@examples(40)
@given(instances(max_requests=4, max_length=5, engine=engines()), PRICES)
def test_any_prices_prove_a_bound(instance, prices):
    """Good or bad, what prices prove is never above the optimum."""
    certificate = certify(instance, prices)
    assert certificate.bound <= naive.best_tel(instance)


@given(instances(max_requests=8, engine=engines()), PRICES)
def test_the_independent_checker_agrees(instance, prices):
    """`sortedf.certificate` shares no code with `lp.prices`, and says the same."""
    certificate = certify(instance, prices)
    assert proven_bound(instance, certificate) == certificate.bound


def test_no_prices_prove_the_sum_of_answers():
    """With free KV every request starts on arrival."""
    instance = Instance([1, 2], [3, 4], 10, [0, 5])
    assert certify(instance, []).bound == 7
    assert certify(instance, [0.0, 0.0]).bound == 7


def test_negative_prices_become_zero():
    """A price below 0 would prove nothing."""
    instance = Instance([1, 2], [3, 4], 10)
    assert certify(instance, [-1.0, -2.0]).bound == 7


@pytest.mark.parametrize("price", [float("nan"), float("inf")])
def test_prices_that_are_no_numbers_are_refused(price):
    """A solver's garbage is not rounded to something."""
    with pytest.raises(ValueError, match="finite"):
        certify(Instance([1], [1], 2), [price])


def test_prices_beyond_64_bits_are_refused():
    """Rather no bound than a wrapped one."""
    instance = Instance([2**30], [2**30 - 1], 2**31 - 1)
    with pytest.raises(ValueError, match="too large for exact arithmetic"):
        certify(instance, [1e6])


def test_long_lengths_are_exact():
    """With peaks near 2**31 the bits after the point shrink; nothing wraps."""
    length = 2**20
    instance = Instance([2**30] * 2, [length] * 2, 2**31 - 1)
    certificate = certify(instance, np.full(1000, 1e-9))
    assert proven_bound(instance, certificate) == certificate.bound > length


@pytest.mark.parametrize("most", [2**62 - 1, 2**62])
def test_what_is_exact_in_64_bits_is_taken_and_no_more(most):
    """A request that holds 2 tokens, in one step of prices, after its arrival."""
    instance = Instance([1], [1], 2, [4])
    last = 4 + 1  # its arrival and its answer
    prices = Prices(np.array([0, (most - last) // 2]), 0)
    if most < MAX_VALUE:
        assert dual_value(instance, prices)[1] == 1 - 2 * int(prices.value.sum())
    else:
        prices = Prices(prices.value + 1, 0)
        with pytest.raises(ValueError, match="do not fit the 64-bit arithmetic"):
            dual_value(instance, prices)


def test_one_negative_price_among_others_is_refused():
    instance = Instance([1], [1], 2)
    with pytest.raises(ValueError, match="prices must not be negative"):
        dual_value(instance, Prices(np.array([3, -1, 5]), 0))


def test_no_prices_and_no_requests_have_a_value():
    for instance in (Instance([1], [1], 2), Instance([], [], 2)):
        prices = Prices(np.array([], dtype=np.int64), 3)
        assert dual_value(instance, prices)[1] == int(instance.decode.sum()) << 3


def test_prices_have_as_many_bits_as_fit():
    """Brackets of at most 3.5 steps, below 2 ** 2, leave 59 bits; zeros are cut off."""
    fixed = fixed_point(Instance([1], [1], 2), [0.25, 0.0, 0.0])
    assert (fixed.value.tolist(), fixed.scale_bits) == ([2**57], 59)


def test_prices_without_a_bit_after_the_point_are_taken():
    """A bracket of a little less than `2 ** 61`."""
    instance = Instance([2**30], [2**30 - 1], 2**31 - 1)
    certificate = certify(instance, [1.0])
    assert certificate.scale_bits == 0
    assert proven_bound(instance, certificate) == certificate.bound


def test_the_largest_request_limits_the_prices():
    """Not the smallest one; and without prices none does."""
    instance = Instance([1, 9], [1, 9], 18)
    assert dual_value(instance, Prices(np.array([2**54]), 0))[1] < 0
    with pytest.raises(ValueError, match="do not fit the 64-bit arithmetic"):
        dual_value(instance, Prices(np.array([2**56]), 0))
    late = Instance([1], [40], 41, [2**53 - 41])
    assert dual_value(late, Prices(np.array([0]), 9))[1] == 40 << 9
