"""Claim: any prices prove a lower bound, and no horizon is assumed.

For prices `lambda_t >= 0` that end at some step, `D(lambda)` of `lp.prices` is at most
the TEL of every feasible schedule. *Proof:* weak duality, in three lines there; starts
behind the last price only cost more, so the minimum over all starts is that over a
finite range, with no assumption on how long schedules are. QED.

Proved there. Checked in fractions: random prices, good or absurd, on a grid and with
arrivals, never give more than the optimum; the package's integer evaluation is that of
the definition; and its certified bound is below optima of the grid. Where starts are
cut at some heuristic's makespan it is false:
`test_counterexample_cut_horizon.py`.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from lp.prices import bound_of, dual_value, fixed_point
from proofs_checks import pricing, tiny
from sortedf import Instance, bound
from tests import naive


def random_prices(rng: np.random.Generator, steps: int) -> list[Fraction]:
    """Draw prices in 16ths, many of them 0."""
    return [Fraction(int(x), 16) for x in np.maximum(rng.integers(-8, 12, steps), 0)]


def test_random_prices_never_exceed_the_optimum() -> None:
    """And the package computes the same value."""
    rng = np.random.default_rng(5)
    positive = 0
    for instance in tiny.all_instances(3, 3, 4, every=307):
        best = tiny.optimum(instance)
        assert best is not None
        for steps in (3, 9, 20):
            price = random_prices(rng, steps)
            value = pricing.dual_value(instance, price)
            assert value <= best.tel
            positive += value > 0
            rounded = fixed_point(instance, [float(x) for x in price])
            _, scaled = dual_value(instance, rounded)
            assert Fraction(scaled, 2**rounded.scale_bits) == value
            assert bound_of(rounded, scaled) == ceil(value)
    assert positive


def test_arrivals() -> None:
    """The same with requests that arrive later."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        prefill, decode = rng.integers(1, 4, (2, 3))
        budget = int((prefill + decode).max() + rng.integers(0, 4))
        instance = Instance(prefill, decode, budget, rng.integers(0, 6, 3))
        least = naive.best_tel(instance)
        for steps in (4, 12):
            price = random_prices(rng, steps)
            assert pricing.dual_value(instance, price) <= least


def test_the_certified_bound_is_below_optima() -> None:
    """`bound(..., "dual")` on a grid."""
    for instance in tiny.all_instances(3, 3, 3, every=401):
        best = tiny.optimum(instance)
        assert best is not None
        assert bound(instance, "dual").value <= best.tel
