"""Claim: SVF is within `max(2 / (1 - alpha), 1 + 4 / (3 (1 - alpha)))` of the optimum.

`alpha` is the largest peak over `M`; for backlogs without caps, placed without
backfill. As `alpha` tends to 0 it is 7/3, where `test_claim_svf_ratio.py` has 3. With
equal prompts SVF is shortest answer first, and the claim is about that rule.

*Proof.* Let `c = 2 / (1 - alpha)`, requests numbered by volume, and
`V_k = (v_1 + ... + v_k) / M`. By the lemma of `test_claim_list_starts.py`

    TEL  <=  sum o + c sum V_{k-1}.

By `test_claim_fluid_bound.py` the optimum is at least
`sum (V_k - v_k / (2 M)) + sum (o - e) >= sum V_{k-1} + sum (o - e)`. The middle `e` of
a request's life is latest for a prompt of length 0, where it is
`(4 o - 1) / 6`: a longer prompt adds a constant to a density that rises. So
`o - e >= (2 o + 1) / 6 > o / 3`, and

    TEL  <=  c (sum V_{k-1} + sum o / 3) + (1 - c / 3) sum o
         <=  c optimum + (1 - c / 3) sum o.

If `c >= 3` the last term is not positive; otherwise it is at most `1 - c / 3` times the
optimum, which is at least `sum o`. QED.

Ours. Proved above. Checked: every inequality in fractions, against exact optima of
small instances, and the ratio against the fluid bound for larger ones.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from proofs_checks import tiny
from proofs_checks.families import method_tel
from proofs_checks.test_claim_fluid_bound import formulas, middle
from proofs_checks.transformations import mixed
from sortedf import Instance, bound
from sortedf.volume import volume


def constant(alpha: Fraction) -> Fraction:
    """Return the ratio of the claim."""
    return max(2 / (1 - alpha), 1 + Fraction(4, 3) / (1 - alpha))


def chain_holds(instance: Instance, optimum: int) -> bool:
    """Whether every inequality of the proof holds; `alpha < 1`."""
    alpha = Fraction(int(instance.peak.max()), instance.kv_budget)
    c, answers = 2 / (1 - alpha), int(instance.decode.sum())
    before, done = Fraction(0), Fraction(0)
    for v in sorted(volume(instance).tolist()):
        before += done
        done += Fraction(v, instance.kv_budget)
    fluid, _ = formulas(instance)
    tel = method_tel(instance, "svf")
    return (
        tel <= answers + c * before
        and before + Fraction(answers, 3) <= fluid <= optimum
        and tel <= constant(alpha) * optimum
    )


@pytest.mark.parametrize("grid", [(2, 6, 6), (3, 4, 4)])
def test_the_chain_on_optimal_schedules(grid: tuple[int, int, int]) -> None:
    """Small instances whose peaks are below the budget, with their optima."""
    seen = 0
    for instance in tiny.all_instances(*grid, every=97):
        if instance.peak.max() == instance.kv_budget:
            continue
        best = tiny.optimum(instance)
        assert best is not None
        assert chain_holds(instance, best.tel)
        seen += 1
    assert seen > 50


def test_against_the_fluid_bound() -> None:
    """Sixty requests of a mix: the proof compares with the fluid bound only."""
    for seed in range(10):
        instance = mixed(seed, 60)
        alpha = Fraction(int(instance.peak.max()), instance.kv_budget)
        if alpha < 1:
            fluid = bound(instance, "fluid").value
            assert method_tel(instance, "svf") <= constant(alpha) * fluid


def test_the_middle_of_a_life() -> None:
    """`o - e >= (2 o + 1) / 6`, attained without a prompt."""
    for o in range(1, 40):
        assert o - middle(0, o) == Fraction(2 * o + 1, 6) > Fraction(o, 3)
        for s in (1, 2, 7, 100):
            assert o - middle(s, o) >= o - middle(0, o)


def test_a_third_is_the_limit() -> None:
    """No share above a third holds for all lengths, so the step cannot be improved."""
    assert 10_000 - middle(1, 10_000) < Fraction(10_000) * Fraction(334, 1000)
