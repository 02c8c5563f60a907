"""Claim: fixing requests by reduced costs never loses the best group.

For every integer multiplier `0 <= a < D` a group of size `k` that fits the budget has

    (D - a) sum o  >=  (sum of the k smallest c) - a M,    c_i = (D - a) o_i + a w_i,

(`sortedf.groups.core`). *Proof:* `(D - a) sum o = sum c - a sum w`, and `sum w <= M`.
Holding a request that is not among the `k` smallest, or leaving out one that is, raises
the right side by its distance to the `k`-th or next; if that exceeds the sum that
would be accepted, fixing the request is correct. QED.

Proved above. Checked: the inequality for every group of random pools and multipliers;
and the selector `exact` gives the very group of brute force, ties included, on a grid
and on random instances with many ties, as `exact-dp` does.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from proofs_checks.tiny import all_instances
from sortedf import Instance
from sortedf.groups import Exact, Pool, exact_dp
from sortedf.options import Options
from tests import naive


def selected(instance: Instance, select: object) -> list[int]:
    """Ids of the first group of a selector, ascending."""
    pool = Pool.of(instance)
    positions = select(pool, np.random.default_rng(0))  # type: ignore[operator]
    return sorted(pool.ids[positions].tolist())


def test_the_bound_holds_for_every_group() -> None:
    """All groups of pools of seven, and multipliers from none to nearly all."""
    rng = np.random.default_rng(7)
    scale = 64
    for _ in range(20):
        o, s = rng.integers(1, 9, (2, 7))
        w, budget = o + s, int((o + s).max() + rng.integers(0, 20))
        for a in (0, 5, 20, 40, 63):
            cost = (scale - a) * o + a * w
            cheapest = np.sort(cost).cumsum()
            for k in range(1, 8):
                for group in map(list, combinations(range(7), k)):
                    if w[group].sum() <= budget:
                        low = cheapest[k - 1] - a * budget
                        assert (scale - a) * o[group].sum() >= low


def test_the_best_group_of_small_instances() -> None:
    """On a grid of three requests."""
    for instance in all_instances(3, 3, 3, every=37):
        wanted = naive.best_group(instance, [0, 1, 2])
        assert selected(instance, Exact(Options())) == wanted


def test_the_best_group_of_random_instances() -> None:
    """Eight requests, short lengths and so many ties."""
    rng = np.random.default_rng(8)
    for longest in (2, 4, 9, 30):
        for _ in range(10):
            prefill, decode = rng.integers(1, longest + 1, (2, 8))
            budget = int((prefill + decode).max() * rng.integers(1, 5))
            instance = Instance(prefill, decode, budget)
            wanted = naive.best_group(instance, list(range(8)))
            assert selected(instance, Exact(Options())) == wanted
            assert selected(instance, exact_dp) == wanted
