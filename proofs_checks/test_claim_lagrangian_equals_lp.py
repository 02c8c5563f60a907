"""Claim: the best Lagrangian bound is the linear relaxation, no more.

Pricing the memory rows leaves, for each request, a choice of one start: minimise a
linear function over `sum_t x_t = 1, x >= 0`. The corners of that simplex are integer,
so the Lagrangian problem has the integrality property, and the largest `D(lambda)` is
the optimum of the linear relaxation (Geoffrion). So prices alone cannot do better than
the relaxation: closing its gap to the optimum takes other rows or branching.

Proved in general by that argument. Checked exactly, instance by instance: HiGHS'
floating-point solution is rounded to fractions, the fractions are verified to be a
feasible point `x` and prices `lambda >= 0` with `cost(x) = D(lambda)`. By weak duality
both are then optimal, whatever the solver did.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from lp.relaxation import solve_relaxation
from proofs_checks import pricing, tiny

if TYPE_CHECKING:
    from sortedf import Instance


def rounded(x: float) -> Fraction:
    """Nearest fraction with a small denominator."""
    return Fraction(x).limit_denominator(5000)


def primal_cost(instance: Instance, x: dict[tuple[int, int], Fraction]) -> Fraction:
    """Cost of a fractional schedule that is verified to be feasible."""
    held: dict[int, Fraction] = {}
    for (i, t), weight in x.items():
        assert weight >= 0
        for j in range(1, int(instance.decode[i]) + 1):
            tokens = int(instance.prefill[i]) + j
            held[t + j] = held.get(t + j, Fraction(0)) + weight * tokens
    assert all(used <= instance.kv_budget for used in held.values())
    for i in range(instance.num_requests):
        assert sum(w for (k, _), w in x.items() if k == i) == 1
    return sum(
        (w * (t + int(instance.decode[i])) for (i, t), w in x.items()), Fraction(0)
    )


def test_cost_and_dual_value_meet() -> None:
    """On instances of a grid; in most the value is no integer."""
    fractional = 0
    for instance in tiny.all_instances(3, 3, 3, every=211):
        found = solve_relaxation(instance)
        triples = zip(
            found.request.tolist(),
            found.start.tolist(),
            found.weight.tolist(),
            strict=True,
        )
        x = {(i, t): rounded(weight) for i, t, weight in triples}
        price = [max(rounded(value), Fraction(0)) for value in found.prices.tolist()]
        cost = primal_cost(instance, x)
        assert cost == pricing.dual_value(instance, price)
        best = tiny.optimum(instance)
        assert best is not None
        assert cost <= best.tel
        fractional += cost.denominator > 1
    assert fractional
