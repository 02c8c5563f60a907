"""Claim: doubling is within 20 of the optimum, and within 14.1 with the best shift.

For backlogs without caps, placed without backfill. Let `tau_0 < tau_1 < ...` grow by a
factor `b`, `1 <= tau_0 < b`. Stage `k` takes, among the requests with `o <= tau_k` in
order of volume, as many as have volumes of at most `M tau_k` together; those not taken
by an earlier stage are listed next, by answer length.

*Proof.* Let `n(tau)` be the number of requests that some schedule completes by `tau`.
They have answers of at most `tau` and hold at most `M tau` token steps together, so
stage `k` and those before it have at least `n(tau_k)` requests: the smallest volumes
are the most requests. Pack those that are new in stage `k` as
`test_claim_grouping.py` does, which uses only that answers are at most `tau_k` and
volumes at most `M tau_k`: groups whose longest answers have a sum below `5 tau_k`. The
groups in reverse order are the stage's list, by answer length. By
`test_claim_separation.py`, which holds for any groups whose peaks fit, placement
starts no request later than when the groups run one after another. So stages up to `k`
are completed by

    5 (tau_0 + ... + tau_k)  <  5 b / (b - 1) tau_k.

If the schedule's `j`-th completion is `C >= 1`, and `tau_k` the first limit that is at
least `C`, doubling has completed `j` requests by then. Since `tau_k < b C` the ratio is
below `5 b^2 / (b - 1)`, 20 for `b = 2`. With `tau_0 = b^(i / m)`, `i = 0, ..., m - 1`,
the first limits of the `m` shifts that are at least `C` are `m` neighbours on the grid
of powers of `b^(1 / m)`, and the mean of `tau_k / C` over the shifts is below

    b^(1 / m) (b - 1) / (m (b^(1 / m) - 1)).

The best shift is no worse than the mean: with `b = e` and `m = 16` within 14.1, and
`5 e = 13.6` in the limit. QED.

*With a cap `K` on the number of requests* areas `2 v / M + o / K` replace volumes, of
which any schedule completes at most `3 tau` by `tau`. A group is full if its peaks over
`M` and its number over `K` exceed 1 together with the next request, and these sizes
times the answers have a sum below `6 tau` as `o w < 2 v`: a stage takes less than
`6 tau + tau`, and all constants are larger by 7/5: 28, and 19.7 with the best shift.

Doubling for sums of completion times is by Chakrabarti et al. (ICALP 1996); the method
and the constants are ours. Proved above. Checked: sizes and ends of the stages against
optimal and other schedules, ratios against exact optima.
"""

from __future__ import annotations

from fractions import Fraction
from math import e, inf

import numpy as np
import pytest

from proofs_checks import tiny
from proofs_checks.families import fcfs_trap, method_tel, smallest_volume_trap
from proofs_checks.transformations import RULES, mixed
from sortedf import EngineModel, Instance, Schedule, place, solve
from sortedf.methods.doubling import SHIFTS, doubling_order

STEPS = 5
STEPS_WITH_CAP = 7


def mean_constant(base: float, shifts: int, steps: int) -> float:
    """Return the ratio of the best shift."""
    root: float = base ** (1 / shifts)
    mean = root * (base - 1) / (shifts * (root - 1))
    return steps * base / (base - 1) * mean


def stages_hold(other: Schedule, base: float, first: float) -> bool:
    """Whether every stage is completed in time, for one shift and any schedule."""
    instance = other.instance
    steps = STEPS if instance.engine.max_num_seqs is None else STEPS_WITH_CAP
    order = doubling_order(instance, first, base)
    done = np.sort(tiny.checked(instance, place(instance, order).start).completion)
    tau, end = first, 0.0
    while True:
        end += steps * tau
        least = int((other.completion <= tau).sum())
        if int((done <= end).sum()) < least:
            return False
        if least == instance.num_requests:
            return True
        tau *= base


def test_constants_are_as_stated() -> None:
    """Of `b = 2` with one shift, and of e with the method's number of shifts."""
    assert mean_constant(2, 1, STEPS) == pytest.approx(20)
    assert mean_constant(2, 1, STEPS_WITH_CAP) == pytest.approx(28)
    assert 14.0 < mean_constant(e, SHIFTS, STEPS) < 14.1
    assert 19.6 < mean_constant(e, SHIFTS, STEPS_WITH_CAP) < 19.7
    assert 13.5 < mean_constant(e, 10_000, STEPS) < 13.6


def test_stages_against_optimal_schedules() -> None:
    """Small instances, with their optima."""
    for instance in tiny.all_instances(3, 4, 4, every=397):
        best = tiny.optimum(instance)
        assert best is not None
        for first in (1.0, 1.5):
            assert stages_hold(best, 2, first)
        assert stages_hold(best, e, 1.0)
        assert method_tel(instance, "doubling") <= 14.1 * best.tel


@pytest.mark.parametrize("places", [None, 3])
def test_stages_against_other_schedules(places: int | None) -> None:
    """Larger instances, under several rules: the claim is about any schedule."""
    for seed in range(4):
        drawn = mixed(seed, 60)
        engine = EngineModel(drawn.kv_budget, 1, places)
        instance = Instance(drawn.prefill, drawn.decode, engine=engine)
        for rule in RULES:
            other = solve(instance, rule, bound="none").schedule
            for first in (1.0, 1.3, 1.7):
                assert stages_hold(other, 2, first)
                assert stages_hold(other, e, first)


def test_traps_of_other_rules_do_not_grow() -> None:
    """Where FCFS and SVF lose any factor, doubling stays near the optimum."""
    for trap in (fcfs_trap, smallest_volume_trap):
        worst = 0.0
        for k in (4, 8, 12):
            instance, good = trap(k)
            best = place(instance, good).tel
            worst = max(worst, method_tel(instance, "doubling") / best)
        assert worst < 2


def test_largest_ratio_of_a_grid() -> None:
    """All sorts of three requests with lengths up to 4: far below the constant."""
    worst = Fraction(0)
    for instance in tiny.all_instances(3, 4, 4, every=101):
        best = tiny.optimum(instance, limit=tiny.UNBOUNDED)
        assert best is not None
        worst = max(worst, Fraction(method_tel(instance, "doubling"), best.tel))
    assert 1 < worst < inf
    assert worst <= Fraction(3, 2)
