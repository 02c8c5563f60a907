"""Claim (Sorted-F's proof, grouping): requests that complete early pack well.

Let `Z` be requests that any schedule of a backlog completes by time `tau`. Put them,
longest answers first, into groups whose peaks fit, a new one if the next does not fit.
Then the longest answers of the groups have a sum of less than `5 tau`.

*Proof.* Let `w = s + o` be the peaks, `A_1, ..., A_b` the groups and `max_k` their
longest answers, at most `tau`. The schedule holds
`v_i = s_i o_i + o_i (o_i + 1) / 2 > o_i w_i / 2` token steps for each request, and at
most `M tau` in all, so `sum o_i w_i < 2 M tau`. The first request of `A_{k+1}`, whose
answer is `max_{k+1}`, does not fit beside `A_k`, and no answer in `A_k` is shorter, so

    M max_{k+1}  <  sum of o_i w_i over A_k and the first request of A_{k+1},
    M (max_2 + ... + max_b)  <  2 sum o_i w_i  <  4 M tau,

as each request is counted twice at most. With `max_1 <= tau` the sum is below `5 tau`.
QED. *Corollary.* If every group of `Z` that fits has `F >= F_0`, then
`|Z| <= 5 tau / F_0`: the mean answer of `A_k` is `|A_k| F(A_k) >= |A_k| F_0`, and it is
at most `max_k`.

This is the argument for next-fit decreasing height in strip packing (Coffman, Garey,
Johnson, Tarjan 1980), with twice the volume as area. The paper's constant follows with
increasing answers, where the sum is `6 tau`: `48 = 2 * 4 * 6`, here `40 = 2 * 4 * 5`.
Proved above; every inequality is checked on optimal schedules of small instances and on
schedules of several rules for larger ones, at every completion, in integers. A
family reaches `2 tau - 2`, so that no constant below 2 holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proofs_checks import tiny
from proofs_checks.families import method_tel
from proofs_checks.transformations import RULES, f_of, groups_of, mixed, packed
from sortedf import Instance, solve
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
        longest = [int(decode[group].max()) for group in found]
        weighted = int((decode[done] * peak[done]).sum())
        if not (
            weighted < 2 * int(volume(instance)[done].sum()) <= 2 * budget * tau
            and budget * sum(longest[1:]) <= 2 * weighted
            and longest == sorted(longest, reverse=True)
            and sum(longest) < 5 * tau
            and all(peak[group].sum() <= budget for group in found)
        ):
            return False
    return True


def corollary_holds(schedule: Schedule) -> bool:
    """Whether `|Z| F_j <= 5 tau` for the requests left before each Sorted-F group."""
    instance = schedule.instance
    left = np.ones(instance.num_requests, dtype=bool)
    for group in groups_of(instance):
        f = f_of(instance, group)
        for tau in np.unique(schedule.completion).tolist():
            done = int((left & (schedule.completion <= tau)).sum())
            if done * f > 5 * tau:
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


def test_no_constant_below_two_holds() -> None:
    """Pairs, the second a step later, fit in `2 L + 1` tokens; their peaks do not."""
    answer, pairs = 10, 30
    instance = Instance([1] * 2 * pairs, [answer] * 2 * pairs, 2 * answer + 1)
    start = [answer * (i // 2) + i % 2 for i in range(2 * pairs)]
    other = tiny.checked(instance, start)
    tau = int(other.completion.max())
    longest = [
        int(instance.decode[group].max())
        for group in packed(instance, list(range(2 * pairs)))
    ]
    assert sum(longest) == 2 * tau - 2
    assert grouping_holds(other)
