"""Claim: one machine of speed `R` bounds every schedule of `R` engines, in seconds.

`R` equal engines have a cache each; a request is served by one of them. With the works
`W_i` and distances `d_i` of `test_claim_seconds.py`, ascending by work,

    sum C_i  >=  sum_k (W_1 + ... + W_k - W_k / 2) / R + sum_i d_i,

whether or not the engines' steps begin at the same times. *Proof.* Work that is spread
evenly over its step has a density of at most 1 on each engine, and so of at most `R` in
all. The sum of mean busy times is at least that of one machine of speed `R` that serves
the smallest work first, and distances are those of one engine. QED.

In steps with a common clock, all rows hold with `R K`, `R M` and `R B`. Rows summed
over engines are stronger than rows of the sum: a rounded row `phi` with capacity `K`
gives `R phi(K)`, not `phi(R K)`. *Weak:* six requests of prompt 5 and answer 1 on two
engines of `M = 10` run one at a time on each, 12 steps in all; pooled memory holds
three at once and proves 9, and rows summed over engines 12.

*Assumption.* A request is served by one engine at a time: its distances count the steps
of that engine.

Ours. Proved above. Sampled: 120 sets of tiny engines, every way to deal requests to
them, the best of all schedules on each.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from proofs_checks import tiny
from proofs_checks.engines import (
    Lengths,
    dealt,
    fluid_sum,
    optimum,
    random_engine,
    random_lengths,
    workload,
)
from sortedf import Instance, bound
from sortedf.engine_model import EngineModel
from sortedf.step_time import StepTime
from tests.sortedf.engine_plan import naive_seconds


def many_bound(
    lengths: Lengths,
    engine: EngineModel,
    numbers: list[int],
    prices: list[Fraction],
    num_engines: int,
) -> Fraction:
    """Right side of the claim."""
    own = workload(lengths, engine, StepTime(*map(float, numbers)))
    exact = list(map(Fraction, numbers))
    parts = [naive_seconds.request(own, exact, prices, s, o) for s, o in lengths]
    if any(work == 0 for work, _, _ in parts):
        return Fraction(0)
    busy = fluid_sum([work for work, _, _ in parts], num_engines)
    return busy + sum((moment / work for work, moment, _ in parts), Fraction(0))


def test_no_way_to_deal_is_below_it() -> None:
    """Two or three engines whose steps need no common clock."""
    rng = np.random.default_rng(17)
    for _ in range(120):
        lengths = random_lengths(rng, int(rng.integers(2, 5)), 2)
        engine = random_engine(rng, lengths)
        numbers = [int(rng.integers(1, 5)), *rng.integers(0, 4, 3).tolist()]
        step_time = StepTime(*map(float, numbers))
        num_engines = int(rng.integers(2, 4))
        room = (engine.seqs_cap, engine.num_blocks, engine.tokens_cap)
        parts = rng.integers(0, 4, 3).tolist()
        prices = [
            Fraction(numbers[0] * part, max(sum(parts), 1) * cap)
            for part, cap in zip(parts, room, strict=True)
        ]
        if len(lengths) == 4 and len(set(lengths)) > 2:
            lengths = lengths[:3]
        hands = {tuple(sorted(h)) for hand in dealt(lengths, num_engines) for h in hand}
        least = {h: optimum([*h], engine, step_time) if h else 0 for h in hands}
        best = min(
            sum(least[tuple(sorted(h))] for h in hand)
            for hand in dealt(lengths, num_engines)
        )
        assert many_bound(lengths, engine, numbers, prices, num_engines) <= best


def test_pooled_memory_is_weak_where_engines_cannot_be_filled() -> None:
    """Six requests on two engines of ten tokens: 12, where twenty tokens allow 9."""
    pooled = Instance([5] * 6, [1] * 6, 20)
    best = tiny.optimum(pooled)
    assert best is not None
    assert best.tel == 9
    one = Instance([5] * 3, [1] * 3, 10)
    alone = tiny.optimum(one)
    assert alone is not None
    assert 2 * alone.tel == 12
    # One request at a time on each engine: two machines, one row of each.
    row = EngineModel(1000, max_num_seqs=2)
    seats = Instance([5] * 6, [1] * 6, engine=row)
    assert bound(seats, "machines").value == 12
