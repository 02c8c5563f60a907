"""Claim: work in seconds bounds every schedule of an engine, however steps are filled.

A step that processes `P` prompt tokens and `D` tokens of answers over `U` tokens of KV
takes `alpha + beta P + gamma D + delta U` seconds or more. Charge requests for what
their tokens cost alone, and for a share of `alpha`: works `W_i`, and mean distances
`d_i` of this work from their last tokens. Then

    sum C_i  >=  sum_k (W_1 + ... + W_k - W_k / 2) + sum_i d_i.

*Proof:* `sortedf.engine_plan.seconds_certificate`; with prices over time and by length
of step `sortedf.engine_plan.timed_certificate`.

*Assumptions.* Where an evicted request computes its tokens again, its next token may be
made at the end of that prompt, so tokens cost `min(beta, gamma)`, not `gamma`: a prompt
of 2 and an answer of 2 with `alpha = 1, beta = 0, gamma = 10` takes 2 seconds with an
eviction, and a bound with `gamma` says 12. A prompt's last position alone in a step
counts as decoding. With `s + j` tokens in place of `s + j - 1` it is false as well
(`test_claim_engine_rows.py`).

*Weak* where it matters that requests decode side by side: each is charged a share of
`alpha` as if all steps were full, and is served as if it were alone. For two equal
answers of `o` tokens with `alpha = beta = gamma = 1` and `K = 2` it is 5/6 of the
optimum, `6 o`. Prices by length of step are closer where many run.

Ours. Proved there. Sampled: tiny engines with random step times against the best of all
schedules, for any prices.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from proofs_checks.engines import (
    optimum,
    random_engine,
    random_lengths,
    workload,
)
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.step_time import StepTime
from tests.sortedf.engine_plan import naive_seconds


def test_no_schedule_is_below_it() -> None:
    """Any prices of a full step, one to three requests."""
    rng = np.random.default_rng(15)
    for _ in range(300):
        lengths = random_lengths(rng, int(rng.integers(1, 4)), 2)
        engine = random_engine(rng, lengths)
        numbers = [int(rng.integers(1, 5)), *rng.integers(0, 4, 3).tolist()]
        own = workload(lengths, engine, StepTime(*map(float, numbers)))
        best = optimum(lengths, engine, StepTime(*map(float, numbers)))
        parts = rng.integers(0, 4, 3).tolist()
        room = (engine.seqs_cap, engine.num_blocks, engine.tokens_cap)
        prices = [
            Fraction(numbers[0] * part, max(sum(parts), 1) * cap)
            for part, cap in zip(parts, room, strict=True)
        ]
        assert naive_seconds.proven(own, list(map(Fraction, numbers)), prices) <= best
        assert seconds_bound(own).total_s <= best


def test_full_costs_of_a_token_prove_too_much_with_recomputation() -> None:
    """Its second token comes from a prompt that costs nothing."""
    step_time = StepTime(1.0, 0.0, 10.0, 0.0)
    found: dict[str, tuple[int, Fraction]] = {}
    for eviction in ("recompute", "restart"):
        engine = EngineModel.vllm(10, eviction=eviction)
        best = optimum([(2, 2)], engine, step_time)
        numbers = [Fraction(n) for n in (1, 0, 10, 0)]
        own = workload([(2, 2)], engine, step_time)
        found[eviction] = best, naive_seconds.proven(own, numbers, [Fraction(0)] * 3)
    assert found["recompute"] == (2, Fraction(2))
    assert found["restart"] == (12, Fraction(12))


def test_it_is_weak_where_requests_decode_side_by_side() -> None:
    """Two equal answers; the optimum is 6 seconds for each token of one of them."""
    numbers = [1, 1, 1, 0]
    step_time = StepTime(*map(float, numbers))
    engine = EngineModel.vllm(1000, max_num_seqs=2, eviction="restart")
    exact, prices = list(map(Fraction, numbers)), [Fraction(1, 2), *[Fraction(0)] * 2]
    for o in (2, 3):
        assert optimum([(1, o)] * 2, engine, step_time) == 6 * o
        own = workload([(1, o)] * 2, engine, step_time)
        assert naive_seconds.proven(own, exact, prices) == 5 * o
    long = workload([(1, 300)] * 2, engine, step_time)
    assert naive_seconds.proven(long, exact, prices) == 1500
    assert seconds_bound(long).total_s == pytest.approx(1500)
