"""Claim: the fluid bound is below the optimum, and so is `sum V_k`.

With volumes `v` ascending, `V_k = (v_1 + ... + v_k) / M`, and `e_i` the volume-weighted
middle of a request's life after its start, every schedule of a backlog has

    TEL  >=  sum_k (V_k - v_k / (2 M)) + sum_i (o_i - e_i)  >=  sum_k V_k.

*Proof of the first.* `sortedf.bounds.fluid`: the sum of the mean busy times of any
schedule is at least that of the fluid machine that serves the smallest volume first.
*Of the second.* A request holds at most `M`, so its volume has a density of at most
`M / v` over time, and the middle of such a density that ends at `C` is at
`C - v / (2 M)` or earlier: `o_i - e_i >= v_i / (2 M)`. QED.

Proved above and there. Checked in fractions: the package's value is the formula rounded
up, the second inequality holds, and neither exceeds the optimum, on a grid; and the
bound is reached if equal requests fill the budget one after another.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from proofs_checks import tiny
from proofs_checks.transformations import mixed
from sortedf import Instance, bound


def middle(s: int, o: int) -> Fraction:
    """`e = sum_j (s + j) (j - 1/2) / v`."""
    held = [s + j for j in range(1, o + 1)]
    weighted = sum(
        (w * Fraction(2 * j - 1, 2) for j, w in enumerate(held, 1)), Fraction(0)
    )
    return weighted / sum(held)


def formulas(instance: Instance) -> tuple[Fraction, Fraction]:
    """Both lower bounds of the claim."""
    pairs = list(zip(instance.prefill.tolist(), instance.decode.tolist(), strict=True))
    volumes = sorted(s * o + o * (o + 1) // 2 for s, o in pairs)
    fluid = total = Fraction(0)
    done = Fraction(0)
    for v in volumes:
        share = Fraction(v, instance.kv_budget)
        done += share
        fluid += done - share / 2
        total += done
    fluid += sum(o - middle(s, o) for s, o in pairs)
    return fluid, total


def test_below_every_optimum() -> None:
    """On a grid of three requests."""
    for instance in tiny.all_instances(3, 4, 4, every=131):
        best = tiny.optimum(instance)
        assert best is not None
        fluid, total = formulas(instance)
        assert total <= fluid <= best.tel
        value = max(ceil(fluid), int(instance.decode.sum()))
        assert bound(instance, "fluid").value == value <= best.tel


def test_the_second_inequality_on_larger_instances() -> None:
    """Sixty requests of a mix, and the package's value."""
    for seed in range(10):
        instance = mixed(seed, 60)
        fluid, total = formulas(instance)
        assert total <= fluid
        assert bound(instance, "fluid").value == max(
            ceil(fluid), int(instance.decode.sum())
        )


def test_it_is_reached() -> None:
    """Requests of one step that fill the budget, one after another."""
    instance = Instance([6] * 5, [1] * 5, 7)
    best = tiny.optimum(instance)
    assert best is not None
    assert formulas(instance) == (Fraction(15), Fraction(15))
    assert best.tel == 15
