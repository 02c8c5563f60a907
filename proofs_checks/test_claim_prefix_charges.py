"""Claim: requests may be charged for a shared prefix by what can run together.

Requests below a node of shared KV hold it once while any of them runs. Charge each of
them for a part of the node's tokens, so that the parts of any that can run together add
up to the node at most: `1 / min(g, q)` of it each, if `g` requests share it and at most
`q` of them fit in a step beside it. Then every lower bound for the instance without
shared prefixes, in which prompts are own parts and charges, holds with them.

*Proof.* In a step let some requests below the node run. Their charges add up to at most
the node, which is held; if none runs nothing is charged. So own parts and charges are
at most the KV held, and a schedule of the instance is one of the other. QED. Charges
may differ from request to request, and with prices, from step to step
(`sortedf.split_certificate`).

*Weak* with equal charges where answers differ: of two requests below each of `d` nodes
one has a long answer and one a short one. A node is held for the long answer, whose
request is charged for half of it. If one node fits at a time, the bound tends to half
of the optimum; prices that are split again in each step come within 7 % for `d = 10`.

*Assumption.* Only memory may be charged so. What computing a prefix costs may be shared
in a backlog, where all can wait for it. With arrivals it is false: a prefix of 80
tokens, own prompts and answers of 1, at most 81 tokens in a step, one request at 0 and
19 at 10. The first one computes the prefix, the others are done in step 11: 20 steps of
latency. If each is charged for a twentieth of the prefix, a step can serve 16 of them,
and the fluid bound is 21.2.

Ours. Proved above. Sampled: 40 tiny forests against the best of all schedules.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from proofs_checks.engines import fluid_sum
from sortedf import EngineModel, Instance, bound, solve
from sortedf.shared_prefixes import SharedPrefixes
from tests import naive

NAMES = ("own-parts", "equal-charges", "split-prices", "joint-values")


def documents(num: int, prefix: int, long: int) -> Instance:
    """Return requests with a short and a long answer below each of `num` prefixes."""
    leaf = [k for k in range(num) for _ in range(2)]
    return Instance(
        [prefix + 1] * (2 * num),
        [1, long] * num,
        prefixes=SharedPrefixes([-1] * num, [prefix] * num, leaf),
        engine=EngineModel(prefix + long + 4, prefix_caching=True),
    )


def test_no_schedule_is_below_it() -> None:
    """Three or four requests below one or two prefixes, with arrivals or without."""
    rng = np.random.default_rng(16)
    for case in range(40):
        n, nodes = int(rng.integers(3, 5)), int(rng.integers(1, 3))
        size = rng.integers(1, 5, nodes)
        leaf = rng.permutation(np.arange(n) % nodes)
        prefill = size[leaf] + rng.integers(1, 3, n)
        decode = rng.integers(1, 4, n)
        budget = int((prefill + decode).max() + rng.integers(0, 4))
        instance = Instance(
            prefill,
            decode,
            arrival=rng.integers(0, 3, n) if case % 3 == 0 else None,
            prefixes=SharedPrefixes([-1] * nodes, size, leaf),
            engine=EngineModel(budget, prefix_caching=True),
        )
        best = naive.best_tel(instance)
        for name in NAMES:
            assert bound(instance, name).value <= best


def test_equal_charges_are_weak_where_answers_differ() -> None:
    """The optimum is known for two documents, and within 7 % for ten."""
    small = documents(2, 100, 6)
    values = [bound(small, name).value for name in NAMES]
    assert values == sorted(values)
    assert values[-1] <= naive.best_tel(small) == 23
    large = documents(10, 2000, 30)
    found = solve(large).schedule
    tel = int((found.start + large.decode).sum())
    equal, split = (
        bound(large, name).value for name in ("equal-charges", "split-prices")
    )
    assert 1.8 * equal < tel < 1.07 * split


def test_shares_of_computing_are_false_with_arrivals() -> None:
    """One request at 0 and 19 at 10, by a fluid machine of 81 tokens a step."""
    work = (Fraction(80, 20) + 1) / 81
    first = work / 2 + Fraction(1, 2)
    later = fluid_sum([work] * 19) + Fraction(19, 2)
    possible = 1 + 19  # 81 tokens in step 1, 19 in step 11
    assert possible < first + later < Fraction(212, 10)
