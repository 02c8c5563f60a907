"""Claim: prices of each step prove a bound with evictions if they never increase.

For an engine with at most `K` requests, `M` blocks and `B` tokens in a step, and prices
`k_t, m_t, b_t >= 0` of a request, a block and a token in step `t` that do not increase
and end,

    sum of last steps  >=  sum_i min_t [t + o_i + c_i(t)] - sum_t (K k + M m + B b)_t

for all schedules of a backlog, with cut prompts, evictions, recomputation and pauses.
*Proof:* `sortedf.engine_plan.stepwise_certificate`, where `c_i(t)` is: charge tokens
where they are made; making them as late as the last step allows never costs more.

Without evictions any prices will do, increasing or not, with starts in place of ends:
then a request's tokens are in consecutive steps (`test_claim_dual_bound.py`).

*The assumption is needed.* Two requests with prompts of 1 and answers of 2, and `M = 4`
(papers' count, `s + j`). Together they hold 4 in step 1 and would hold 6 in step 2. One
that is evicted after step 1 computes its three tokens again in step 3: 2 + 3 = 5.
Without evictions the second one starts behind the first, 2 + 4 = 6. A price of 2/3 in
step 2 and none in step 1 gives 16/3, above 5.

*Weak* where the linear relaxation is: requests of one token that hold more than half of
the memory, as in `test_claim_engine_rows.py`; and where KV grows for a long time, as
all requests of a wave hold little at the same time.

Ours. Proved there. Sampled against the best of all schedules here, and by hypothesis in
the package's tests; certificates whose prices increase are refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from proofs_checks import tiny
from proofs_checks.engines import optimum, random_engine, random_lengths, workload
from sortedf import Instance
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS
from sortedf.engine_plan.stepwise_certificate import (
    PRICE_SCALE,
    StepwiseCertificate,
    stepwise_prove,
)
from sortedf.errors import CertificateError

PAIR = [(1, 2), (1, 2)]
ENGINE = EngineModel.vllm(4, counts_new_token=True)


def value(prices: list[Fraction]) -> Fraction:
    """`D` of the pair for prices of a token of KV in steps 1, 2, ..."""

    def price(step: int) -> Fraction:
        return prices[step - 1] if step <= len(prices) else Fraction(0)

    least = min(
        t + 2 + 2 * price(t + 1) + 3 * price(t + 2) for t in range(len(prices) + 1)
    )
    return 2 * least - 4 * sum(prices, Fraction(0))


def test_increasing_prices_prove_too_much_if_requests_are_evicted() -> None:
    """Above the best schedule with evictions, and below the best without."""
    assert optimum(PAIR, ENGINE) == 5
    best = tiny.optimum(Instance([1, 1], [2, 2], 4))
    assert best is not None
    assert best.tel == 6
    assert value([Fraction(0), Fraction(2, 3)]) == Fraction(16, 3)


def test_prices_that_do_not_increase_round_up_to_the_optimum() -> None:
    """On a grid of thirds, three steps."""
    thirds = [Fraction(part, 3) for part in range(7)]
    values = [
        value([a, b, c]) for a in thirds for b in thirds for c in thirds if a >= b >= c
    ]
    assert max(values) == Fraction(14, 3)


def test_a_certificate_with_increasing_prices_is_refused() -> None:
    """Whatever it would prove."""
    own = workload(PAIR, ENGINE)
    claim = StepwiseCertificate(
        own.sha256(), 0, (MIX_SCALE,), (UNITS, 0, 0, 0), (1, 2),
        ((0, 0, 0), (0, 2 * PRICE_SCALE // 3, 0)),
    )  # fmt: skip
    with pytest.raises(CertificateError, match="must not increase"):
        stepwise_prove(own, claim)
    even = replace(claim, prices=((0, PRICE_SCALE // 3, 0),) * 2)
    assert stepwise_prove(own, even) <= 5 * UNITS


def test_no_schedule_is_below_the_best_prices_found() -> None:
    """One to three requests on engines with every kind of limit."""
    rng = np.random.default_rng(12)
    tight = 0
    for _ in range(150):
        lengths = random_lengths(rng, int(rng.integers(1, 4)), 2)
        engine = random_engine(rng, lengths)
        best = optimum(lengths, engine)
        found = seconds_bound(workload(lengths, engine))
        assert found.certificate.bound <= best * UNITS
        tight += found.total_s > best - 1
    assert tight > 75
