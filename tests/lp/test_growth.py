"""Growth rows: true of every schedule, evaluated exactly, never above the optimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lp.growth
from lp import growth_bound as growth_bound_module
from lp.growth import GrowthPrices, growth_bound, growth_prices
from lp.growth_bound import fluid_spacing, growth_certificate, strengthen
from sortedf import EngineModel, Instance, bound, check, generate, place, solve
from sortedf.bounds import BoundOptions
from sortedf.certificate import proven_bound
from sortedf.fluid_prices import fluid_prices
from tests import naive
from tests.strategies import engines, examples, instances


@st.composite
def prices_for(draw: st.DrawFn, instance: Instance) -> GrowthPrices:
    """Any prices, horizons and theta: good or bad, they prove a bound."""
    steps = draw(st.integers(0, 25))
    ints = st.integers(0, 40)
    value = draw(st.lists(ints, min_size=steps, max_size=steps))
    horizon = draw(st.lists(st.integers(0, 6), min_size=steps, max_size=steps))
    theta = draw(st.integers(1, instance.kv_budget + 2))
    return GrowthPrices(np.array(value, int), np.array(horizon, int), theta, 7)


def naive_bound(instance: Instance, prices: GrowthPrices) -> int:
    """The definition of the bound, start by start and step by step."""
    steps = len(prices.value)
    nu = [Fraction(x, 2**prices.scale_bits) for x in prices.value.tolist()]
    horizon, theta = prices.horizon.tolist(), prices.theta
    total = -theta * instance.usable_kv * sum(nu, Fraction(0))
    far = steps + max(horizon, default=0) + int(instance.arrival.max(initial=0)) + 1

    def bracket(s: int, o: int, p: int) -> Fraction:
        cost = Fraction(p + o)
        for t in range(1, steps + 1):
            if p < t <= p + o:
                u = s + t - p
                cost += nu[t - 1] * (theta * u + horizon[t - 1] * min(theta, u))
            if t <= p + o:
                ahead = max(horizon[t - 1] - (p + o - t), 0)
                cost -= instance.usable_kv * nu[t - 1] * ahead
        return cost

    lengths = (instance.prefill, instance.decode, instance.arrival)
    for s, o, a in zip(*(x.tolist() for x in lengths), strict=True):
        total += min(bracket(s, o, p) for p in range(a, far + 1)) - a
    return -(-total.numerator // total.denominator)


@examples(100)
@given(instances(max_requests=5), st.integers(1, 40), st.integers(0, 12))
def test_every_schedule_obeys_the_row(instance, theta, horizon):
    """In each step of a schedule, in fractions, as the module states it."""
    schedule = place(instance, list(range(instance.num_requests)), backfill=2)
    completion = schedule.completion.tolist()
    budget = instance.kv_budget
    for t in range(1, max(completion) + 1):
        left = Fraction(0)
        for s, p, c in zip(
            instance.prefill.tolist(), schedule.start.tolist(), completion, strict=True
        ):
            if p < t <= c:
                u = s + t - p
                left += u + horizon * min(Fraction(1), Fraction(u, theta))
            if c >= t:
                left -= Fraction(budget, theta) * max(horizon - (c - t), 0)
        assert left <= budget


@examples(150)
@given(instances(max_requests=5, engine=engines()), st.data())
def test_bound_is_its_definition(instance, data):
    """Tables, prefix sums and skipped blocks change nothing."""
    prices = data.draw(prices_for(instance))
    assert growth_bound(instance, prices) == naive_bound(instance, prices)


@examples(150)
@given(instances(max_requests=5, engine=engines()), st.data())
def test_anybody_evaluates_the_same(instance, data):
    """`sortedf.growth_certificate` shares no code with `lp`, and says the same."""
    prices = data.draw(prices_for(instance))
    value = growth_bound(instance, prices)
    certificate = growth_certificate(instance, prices, value)
    assert proven_bound(instance, certificate) == value


@examples(150)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_no_prices_prove_more_than_the_optimum(instance, data):
    """Exhaustive search finds nothing below, whatever the prices are."""
    prices = data.draw(prices_for(instance))
    assert growth_bound(instance, prices) <= naive.best_tel(instance)


@examples(60)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_good_prices_prove_no_more_than_the_optimum(instance, data):
    """Prices near the best ones, where a wrong bound would show first."""
    prices = fluid_prices(instance) * data.draw(st.floats(0.5, 1.5))
    horizon = data.draw(
        st.lists(st.integers(0, 4), min_size=len(prices), max_size=len(prices))
    )
    theta = data.draw(st.integers(1, instance.kv_budget))
    found = growth_prices(instance, prices, np.array(horizon, int), theta)
    assert growth_bound(instance, found) <= naive.best_tel(instance)


def documents(n: int, budget: int, seed: int = 1) -> Instance:
    instance, _ = generate("documents", n, seed=seed).to_instance(budget)
    return instance


@pytest.mark.kernel
def test_skipping_blocks_changes_nothing(monkeypatch):
    """On prices long enough for coarse and fine blocks: the same as without any."""
    instance = documents(12, 4200).replace(arrival=np.arange(12) * 40)
    found = strengthen(instance, fluid_prices(instance))
    assert found is not None
    assert len(found.value) > 4 * lp.growth.COARSE
    by_blocks = growth_bound(instance, found)
    least = []
    table = lp.growth._Tables.of(found, instance.usable_kv)
    last = len(found.value) + int(found.horizon.max())
    requests = (instance.prefill, instance.decode, instance.arrival)
    for s, o, a in zip(*(x.tolist() for x in requests), strict=True):
        rest = (1 << found.scale_bits, 0, table.plain, table.extra, table.reward)
        values = [
            lp.growth._bracket(t, s, o, found.theta, *rest) for t in range(a, last + 1)
        ]
        least.append(min(values) - (a << found.scale_bits))
    spent = found.theta * instance.usable_kv * sum(found.value.tolist())
    assert by_blocks == -((spent - sum(least)) >> found.scale_bits)


@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("arrivals", [False, True])
@pytest.mark.parametrize("budget", [4200, 16492])
def test_growth_is_never_above_any_schedule(budget, arrivals, block):
    """Larger instances, whose optimum is unknown."""
    instance = documents(60, budget - budget % block)
    instance = instance.replace(
        engine=EngineModel(instance.kv_budget, block_size=block)
    )
    if arrivals:
        arrival = np.random.default_rng(0).integers(0, 3000, 60)
        instance = instance.replace(arrival=arrival)
    found = strengthen(instance, fluid_prices(instance))
    assert found is not None
    value = growth_bound(instance, found)
    for name in ("svf", "sorted-f", "auto"):
        tel = check(instance, solve(instance, name, bound="none").schedule).tel
        assert value <= tel


def test_growth_lifts_the_bound():
    """By 0.9 % at a budget of two to four documents, on fluid prices alone."""
    instance = documents(600, 8192)
    found = strengthen(instance, fluid_prices(instance))
    assert found is not None
    fluid = bound(instance, "fluid").value
    assert 1.008 * fluid < growth_bound(instance, found) < 1.02 * fluid


@examples(15)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_growth_is_between_dual_and_optimum(instance):
    """The registered bound, with its own prices."""
    value = bound(instance, "growth").value
    assert bound(instance, "dual").value <= value <= naive.best_tel(instance)


def test_spacing_of_a_backlog():
    """While a request is served, completions are its volume over the budget apart."""
    instance = documents(40, 8192)
    v = np.sort(instance.prefill * instance.decode + instance.decode**2 / 2)
    spacing = fluid_spacing(instance, 2500)
    assert spacing.shape == (2500,)
    assert spacing[0] == pytest.approx(v[0] / 8192, rel=0.05)
    assert (spacing >= 0).all()


def test_bad_prices_are_refused():
    """Wrong signs, lengths and sizes are errors, not wrong bounds."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10)
    ones, zeros = np.ones(4, int), np.zeros(4, int)
    for bad in (
        GrowthPrices(-ones, zeros, 3, 4),
        GrowthPrices(ones, -ones, 3, 4),
        GrowthPrices(ones, zeros[:2], 3, 4),
        GrowthPrices(ones, zeros, 0, 4),
        GrowthPrices(ones << 60, ones, 3, 4),
        GrowthPrices(ones, ones, 3, 62),
    ):
        with pytest.raises(ValueError, match=r"prices|theta"):
            growth_bound(instance, bad)
    with pytest.raises(ValueError, match="finite"):
        growth_prices(instance, np.array([np.nan]), zeros[:1], 3)
    with pytest.raises(ValueError, match="too large"):
        growth_prices(instance, np.array([1e30]), zeros[:1], 3)


@pytest.mark.parametrize(
    ("instance", "fits", "too_large"),
    [
        # 4 + p volume, of 3 + 6 tokens
        (Instance([1], [3], 4), ([0], [2**62 // 10], 0), ([0], [2**62 // 8], 0)),
        # tokens pay (theta + H) p 2 = 8 p, the reward is (H p) M H = 18 p
        (
            Instance([1], [1], 2),
            ([3, 0], [2**62 // 27, 0], 0),
            ([3, 0], [2**62 // 25, 0], 0),
        ),
        # the last step: two of prices, the longest horizon, the answer, and one more
        (Instance([1], [1], 2), ([3, 0], [0, 0], 59), ([4, 0], [0, 0], 59)),
    ],
)
def test_what_fits_is_taken_and_no_more(instance, fits, too_large):
    """Below `2 ** 62`, in floats, which are exact enough here."""

    def value(horizon, price, bits):
        prices = GrowthPrices(np.array(price), np.array(horizon), 1, bits)
        return growth_bound(instance, prices)

    value(*fits)
    with pytest.raises(ValueError, match="do not fit the 64-bit arithmetic"):
        value(*too_large)


def test_nothing_to_do():
    """No requests, no prices, no latency."""
    empty = Instance([], [], 5)
    assert strengthen(empty, np.zeros(0)) is None
    assert bound(empty, "growth").value == 0
    nothing = GrowthPrices(np.zeros(0, int), np.zeros(0, int), 1, 0)
    assert growth_bound(Instance([2], [3], 5), nothing) == 3


def test_a_time_limit_is_kept():
    """Without time to climb, start prices are strengthened."""
    options = BoundOptions(time_limit_s=0.0)
    instance = documents(100, 8192)
    value = lp.growth_bound.growth(instance, options).value
    assert value > bound(instance, "fluid").value


def test_rows_over_many_steps_are_left_when_the_time_is_over(monkeypatch):
    """Choosing them takes two seconds for each million steps."""
    instance = documents(30, 8192)
    dual = bound(instance, "dual", time_limit=0).value
    assert bound(instance, "growth", time_limit=0).value > dual
    monkeypatch.setattr(growth_bound_module, "MANY_STEPS", 1)
    assert bound(instance, "growth", time_limit=0).value == dual
