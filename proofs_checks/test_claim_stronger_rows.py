"""Claim: two kinds of rows hold for all schedules and cut off fractional ones.

*Rounded rows* (`lp.dff`): for capacity `K` and divisor `d`, `r = K mod d`, the function
`phi(w) = (d - r) floor(w / d) + max(0, w mod d - r)` is superadditive, so weights with
`sum w <= K` have `sum phi(w) <= phi(K)`. *Growth rows* (`lp.growth`): since usage grows
until the next completion, memory cannot be full all the time.

Both are proved in their modules. Checked: superadditivity for every `d <= K <= 20` and
all pairs; the growth row in every step of optimal schedules, for several horizons and
`theta`, in fractions; and the bounds built on them stay below optima of a grid.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lp.dff import RoundedRow
from proofs_checks import tiny
from proofs_checks.transformations import mixed
from sortedf import BOUNDS, Schedule, bound, solve


def test_rounded_rows_are_superadditive() -> None:
    """Every capacity up to 20, every divisor, every pair of weights."""
    for capacity in range(1, 21):
        for divisor in range(1, capacity + 1):
            row = RoundedRow(capacity, divisor)
            phi = row.weight(np.arange(capacity + 1)).tolist()
            assert phi[capacity] == row.limit
            for x in range(capacity + 1):
                for y in range(capacity + 1 - x):
                    assert phi[x] + phi[y] <= phi[x + y]


def growth_rows_hold(schedule: Schedule, horizon: int, theta: Fraction) -> bool:
    """Whether the row holds in every step."""
    instance = schedule.instance
    runs = list(
        zip(
            instance.prefill.tolist(),
            schedule.start.tolist(),
            schedule.completion.tolist(),
            strict=True,
        )
    )
    budget = instance.kv_budget
    for t in range(1, schedule.makespan + 1):
        held = [s + t - p for s, p, c in runs if p < t <= c]
        left = sum(u + horizon * min(Fraction(1), u / theta) for u in held)
        ends = sum(max(horizon - (c - t), 0) for _, _, c in runs if c >= t)
        if left - budget / theta * ends > budget:
            return False
    return True


@pytest.mark.parametrize("horizon", [0, 1, 3, 10])
@pytest.mark.parametrize("theta", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_growth_rows_hold(horizon: int, theta: Fraction) -> None:
    """Optima of a grid, and a larger schedule."""
    for instance in tiny.all_instances(3, 3, 4, every=907):
        best = tiny.optimum(instance)
        assert best is not None
        assert growth_rows_hold(best, horizon, theta)
    larger = solve(mixed(2, 40), "svf", bound="none").schedule
    assert growth_rows_hold(larger, horizon, theta)


def test_bounds_with_them_are_below_optima() -> None:
    """The package's stronger bounds."""
    names = [name for name in ("growth", "fluid-dff", "branching") if name in BOUNDS]
    assert names
    for instance in tiny.all_instances(3, 3, 3, every=1201):
        best = tiny.optimum(instance)
        assert best is not None
        for name in names:
            assert bound(instance, name).value <= best.tel
