"""Refuted: "the linear relaxation up to a heuristic's makespan is a lower bound".

Three requests with prompts 4, 4, 2, answers 2, 4, 2 and `M = 11`: placed in this
order they are done in 5 steps, but the least TEL of 10 takes 6. Cut at step 5 the
relaxation has the value 31/3, which would round up to a "bound" of 11.

Proved by the prices below, in fractions: with all ends by step 5 they give `D = 31/3`,
while without a horizon, over the same prices, `D` is at most 10 as it has to be.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from lp.relaxation import solve_relaxation
from proofs_checks import pricing, tiny
from sortedf import Instance

INSTANCE = Instance([4, 4, 2], [2, 4, 2], 11)


def test_a_cut_horizon_proves_nothing() -> None:
    """The cut value is above the optimum; the same prices without a cut are not."""
    best = tiny.optimum(INSTANCE)
    assert best is not None
    assert tiny.listed(INSTANCE, "fcfs").makespan == 5
    assert (best.tel, best.makespan) == (10, 6)
    found = solve_relaxation(INSTANCE, horizon=5)
    assert found.objective == pytest.approx(31 / 3)
    price = [Fraction(x).limit_denominator(1000) for x in found.prices.tolist()]
    assert pricing.dual_value(INSTANCE, price, latest=5) == Fraction(31, 3)
    assert pricing.dual_value(INSTANCE, price) <= 10
    assert found.bound <= 10  # the certificate scans all starts
