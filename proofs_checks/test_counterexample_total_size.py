"""Refuted: "smallest prompt plus answer first is within a constant factor".

Sorted-F's paper states that the ratio is unbounded. In `total_size_trap(k)` a request
with a prompt of 1 and `k^2` steps comes first because its total is smaller by 2; `k`
others then wait for all of its memory, though they need it for one step each. It has

    TEL = k^2 + k k^2 + k (k + 1) / 2,    the others first   k (k + 1) / 2 + k + k^2,

so the ratio is above `2 k / 3 - 1`: proved by these formulas, which are checked here.

Why the others stay bounded here: `F = 1` for each of the `k`, `k^2` for the long one;
volumes are `M = k^2 + 3` and more than `k^4 / 2`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from proofs_checks.families import (
    method_tel,
    ratio_to_bound,
    ratio_to_schedule,
    total_size_trap,
)

SIZES = (3, 5, 8, 13, 21)


@pytest.mark.parametrize("backfill", [0, 20])
def test_the_ratio_grows_without_limit(backfill: int) -> None:
    """It is above `2 k / 3 - 1`."""
    ratios = [
        ratio_to_schedule(*total_size_trap(k), "total-size", backfill) for k in SIZES
    ]
    wanted = [Fraction(2 * k, 3) - 1 for k in SIZES]
    assert all(ratio > low for ratio, low in zip(ratios, wanted, strict=True))
    assert all(a < b for a, b in pairwise(ratios))


def test_the_formulas_hold() -> None:
    """Both TELs are as the docstring says."""
    for k in SIZES:
        instance, good = total_size_trap(k)
        tel = k * k + k**3 + k * (k + 1) // 2
        other = k * (k + 1) // 2 + k + k * k
        assert method_tel(instance, "total-size") == tel
        assert ratio_to_schedule(instance, good, "total-size") == Fraction(tel, other)


@pytest.mark.parametrize("method", ["sorted-f", "svf"])
def test_others_stay_near_the_bound(method: str) -> None:
    """Sorted-F and SVF are within 2 of a proven lower bound at every size."""
    assert all(ratio_to_bound(total_size_trap(k)[0], method) <= 2 for k in SIZES)
