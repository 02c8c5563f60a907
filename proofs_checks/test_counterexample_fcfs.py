"""Refuted: "first come, first served is within a constant factor of the optimum".

Sorted-F's paper states that the ratio is unbounded. The family `fcfs_trap(k)` has a
first request beside which none of the `k^2` others fits for `k` steps. FCFS has

    TEL = k + k^2 (k + 1),    with the small ones first it is    k^2 + (k + 1),

so the ratio is above `k - 1` for every `k >= 2`: proved by these two formulas, which
are checked here for some `k`. Backfilling does not help: no request fits.

Why the others stay bounded here: the small ones are one group with `F = 1 / k^2` and
have volumes of `k + 1`, the large request has `F = k` and a volume above
`(M - k) k > k^4 - k^2`, so both Sorted-F and SVF start the small ones first.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from proofs_checks.families import (
    fcfs_trap,
    method_tel,
    ratio_to_bound,
    ratio_to_schedule,
)

SIZES = (2, 3, 5, 8, 13)


@pytest.mark.parametrize("backfill", [0, 20])
def test_the_ratio_grows_without_limit(backfill: int) -> None:
    """It is above `k - 1`."""
    ratios = [ratio_to_schedule(*fcfs_trap(k), "fcfs", backfill) for k in SIZES]
    assert all(ratio > k - 1 for ratio, k in zip(ratios, SIZES, strict=True))
    assert all(a < b for a, b in pairwise(ratios))


def test_the_formulas_hold() -> None:
    """Both TELs are as the docstring says."""
    for k in SIZES:
        instance, good = fcfs_trap(k)
        ratio = Fraction(k + k * k * (k + 1), k * k + k + 1)
        assert method_tel(instance, "fcfs") == k + k * k * (k + 1)
        assert ratio_to_schedule(instance, good, "fcfs") == ratio


@pytest.mark.parametrize("method", ["sorted-f", "svf"])
def test_others_stay_near_the_bound(method: str) -> None:
    """Sorted-F and SVF are within 2 of a proven lower bound at every size."""
    assert all(ratio_to_bound(fcfs_trap(k)[0], method) <= 2 for k in SIZES)
