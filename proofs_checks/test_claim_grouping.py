"""Claim (Sorted-F's proof, grouping): requests that complete early pack well.

Let `Z` be requests that any schedule of a backlog completes by time `tau`. Put them, in
order of their answers, into groups whose peaks fit, a new one if the next does not.
Then the longest answers of the groups have a sum of at most `6 tau`.

*Proof.* Let `w = s + o` be the peaks, `A_1, ..., A_b` the groups, `min_k` and `max_k`
their shortest and longest answers, so `max_k <= min_{k+1}`; all are at most `tau`. The
schedule holds `v_i = s_i o_i + o_i (o_i + 1) / 2 > o_i w_i / 2` token steps for each
request, and at most `M tau` in all, so `sum o_i w_i < 2 M tau`. Two neighbours do not
fit together, `w(A_k) + w(A_{k+1}) > M`, and no answer of the two is below `min_k`, so

    M (min_1 + ... + min_{b-1})  <=  2 sum o_i w_i  <  4 M tau,
    max_1 + ... + max_b  <=  min_2 + ... + min_{b-1} + max_{b-1} + max_b  <=  6 tau.

QED. *Corollary.* If every group of `Z` that fits has `F >= F_0`, then
`|Z| <= 6 tau / F_0`: the mean answer of `A_k` is `|A_k| F(A_k) >= |A_k| F_0`, and it is
at most `max_k`.

Statement and proof are ours, made to fit the paper's constant: `48 = 2 * 4 * 6`. Proved
above; every inequality is checked on optimal schedules of small instances and on
schedules of several rules for larger ones, at every completion, in integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proofs_checks import tiny
from proofs_checks.families import method_tel
from proofs_checks.transformations import RULES, f_of, groups_of, mixed, packed
from sortedf import solve
from sortedf.volume import volume

if TYPE_CHECKING:
    from sortedf import Schedule


def grouping_holds(schedule: Schedule) -> bool:
    """Whether all inequalities of the proof hold at every completion."""
    instance = schedule.instance
    budget, decode, peak = instance.kv_budget, instance.decode, instance.peak
    for tau in np.unique(schedule.completion).tolist():
        done = np.flatnonzero(schedule.completion <= tau)
        found = packed(instance, done.tolist())
        shortest = [int(decode[group].min()) for group in found]
        longest = [int(decode[group].max()) for group in found]
        weighted = int((decode[done] * peak[done]).sum())
        if not (
            weighted < 2 * int(volume(instance)[done].sum()) <= 2 * budget * tau
            and budget * sum(shortest[:-1]) <= 2 * weighted
            and all(a <= b for a, b in zip(longest, shortest[1:], strict=False))
            and sum(longest) <= 6 * tau
            and all(peak[group].sum() <= budget for group in found)
        ):
            return False
    return True


def corollary_holds(schedule: Schedule) -> bool:
    """Whether `|Z| F_j <= 6 tau` for the requests left before each Sorted-F group."""
    instance = schedule.instance
    left = np.ones(instance.num_requests, dtype=bool)
    for group in groups_of(instance):
        f = f_of(instance, group)
        for tau in np.unique(schedule.completion).tolist():
            done = int((left & (schedule.completion <= tau)).sum())
            if done * f > 6 * tau:
                return False
        left[group] = False
    return True


def test_on_optimal_schedules() -> None:
    """Small instances, with their optima."""
    for instance in tiny.all_instances(3, 4, 4, every=397):
        best = tiny.optimum(instance)
        assert best is not None
        assert grouping_holds(best)
        assert corollary_holds(best)


def test_on_other_schedules() -> None:
    """Larger ones, under several rules: the claim is about any schedule."""
    for seed in range(4):
        instance = mixed(seed, 40)
        for rule in RULES:
            schedule = solve(instance, rule, bound="none").schedule
            assert schedule.tel == method_tel(instance, rule)
            assert grouping_holds(schedule)
        assert corollary_holds(schedule)
