"""Refuted: "shortest answer first is within a constant factor of the optimum".

Sorted-F's paper states that the ratio of MC-SF is unbounded when prompts differ. In
`shortest_answer_trap(k)` `k` requests fill the budget for one step each, and `k^2`
small ones of two steps fit together. MC-SF has

    TEL = k (k + 1) / 2 + k^2 (k + 2),
    small ones first   2 k^2 + 2 k + k (k + 1) / 2,

so the ratio is above `2 k / 5 - 1` and grows without limit: proved by these formulas
(`k^3 + 2.5 k^2 + k / 2` over `2.5 k^2 + 2.5 k`), which are checked for some `k`.

Why the others stay bounded here: a group of all small ones has `F = 2 / k^2`, a large
request has `F = 1`; and a volume of 5 is below one of `M = 3 k^2`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from proofs_checks.families import (
    method_tel,
    ratio_to_bound,
    ratio_to_schedule,
    shortest_answer_trap,
)

SIZES = (2, 4, 7, 11)


@pytest.mark.parametrize("backfill", [0, 20])
def test_the_ratio_grows_without_limit(backfill: int) -> None:
    """It is above `2 k / 5 - 1`, with any backfill."""
    ratios = [
        ratio_to_schedule(*shortest_answer_trap(k), "mc-sf", backfill) for k in SIZES
    ]
    wanted = [Fraction(2 * k, 5) - 1 for k in SIZES]
    assert all(ratio > low for ratio, low in zip(ratios, wanted, strict=True))
    assert all(a < b for a, b in pairwise(ratios))


def test_the_formulas_hold() -> None:
    """Both TELs are as the docstring says."""
    for k in SIZES:
        instance, good = shortest_answer_trap(k)
        tel = k * (k + 1) // 2 + k * k * (k + 2)
        other = 2 * k * k + 2 * k + k * (k + 1) // 2
        assert method_tel(instance, "mc-sf") == tel
        assert ratio_to_schedule(instance, good, "mc-sf") == Fraction(tel, other)


@pytest.mark.parametrize("method", ["sorted-f", "svf"])
def test_others_stay_near_the_bound(method: str) -> None:
    """Sorted-F and SVF are within 2 of a proven lower bound at every size."""
    assert all(ratio_to_bound(shortest_answer_trap(k)[0], method) <= 2 for k in SIZES)
