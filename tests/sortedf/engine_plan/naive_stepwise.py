"""A slow twin of the bound by prices of each step: the definition, in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from sortedf.engine_plan.seconds_certificate import MIX_SCALE, coefficients
from sortedf.engine_plan.stepwise_certificate import PRICE_SCALE, StepwiseCertificate

if TYPE_CHECKING:
    from sortedf.engine_plan.workload import EngineWorkload

Prices = list[tuple[int, ...]]


def charged(workload: EngineWorkload, prices: Prices, s: int, o: int, t: int) -> int:
    """Steps and prices of a request whose answer is made in the steps after `t`."""

    def price(step: int, which: int) -> int:
        return prices[step - 1][which] if step <= len(prices) else 0

    rules = workload.rules
    cost = (t + o) * PRICE_SCALE
    for j in range(1, o + 1):
        held = rules.blocks(s + j - 1 + rules.extra_slots)
        cost += price(t + j, 0) + held * price(t + j, 1)
        cost += price(t + j, 2) if j >= 2 else 0
    for position in range(s):  # from the end of the prompt
        cost += price(t + 1 - position // rules.tokens_cap, 2)
    return cost


def proven(workload: EngineWorkload, claim: StepwiseCertificate) -> Fraction:
    """Evaluate a certificate of a backlog, in seconds over 1e-15, with no rounding."""
    prices: Prices = []
    for end, row in zip(claim.ends, claim.prices, strict=True):
        prices += [row] * (end - len(prices))
    rules = workload.rules
    total = 0
    for s, o in zip(workload.prefill.tolist(), workload.decode.tolist(), strict=True):
        first = -(-s // rules.tokens_cap) - 1
        total += min(
            charged(workload, prices, s, o, t)
            for t in range(first, first + len(prices) + 3)
        )
    for k, m, b in prices:
        total -= rules.seqs_cap * k + rules.num_blocks * m + rules.tokens_cap * b
    return Fraction(claim.coefficient[0] * total, PRICE_SCALE)


@st.composite
def stepwise_claims(draw: st.DrawFn, workload: EngineWorkload) -> StepwiseCertificate:
    """Draw prices that do not increase; most of them prove little."""
    runs = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    rules = workload.rules
    scales = [4, min(rules.seqs_cap, 8), rules.num_blocks, min(rules.tokens_cap, 8)]
    prices = []
    now = [0, 0, 0]
    for _ in runs:
        for r in range(3):
            fall = draw(st.integers(0, scales[0]))
            now[r] += fall * PRICE_SCALE // scales[r + 1]
        prices.append(tuple(now))
    mix = (MIX_SCALE, *(0 for _ in workload.step_times[1:]))
    ends = [sum(runs[: k + 1]) for k in range(len(runs))]
    return StepwiseCertificate(
        workload.sha256(), 0, mix, coefficients(workload, mix), tuple(ends),
        tuple(reversed(prices)),
    )  # fmt: skip
