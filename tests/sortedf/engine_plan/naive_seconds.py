"""A slow twin of the bound in seconds: token by token, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortedf.engine_plan.workload import EngineWorkload


def proven(
    workload: EngineWorkload, coefficient: list[Fraction], price: list[Fraction]
) -> Fraction:
    """Evaluate what prices prove, with nothing rounded."""
    arrival = [Fraction(a) for a in workload.arrival_s.tolist()]
    parts = [
        request(workload, coefficient, price, s, o)
        for s, o in zip(
            workload.prefill.tolist(), workload.decode.tolist(), strict=True
        )
    ]
    middle = _mean_busy_times([work for work, _, _ in parts], arrival)
    total = Fraction(0)
    for (work, moment, alone), a, busy in zip(parts, arrival, middle, strict=True):
        total += busy + moment / work - a if work else alone
    return max(total, sum((alone for _, _, alone in parts), Fraction(0)))


def request(
    workload: EngineWorkload,
    coefficient: list[Fraction],
    price: list[Fraction],
    s: int,
    o: int,
) -> tuple[Fraction, Fraction, Fraction]:
    """Work, sum of work times distance, and least latency."""
    alpha, beta, gamma, delta = coefficient
    k, m, b = price
    rules = workload.rules
    last = min(beta, gamma)
    g = last if rules.eviction == "recompute" else gamma
    work = moment = behind = Fraction(0)
    for j in range(o, 1, -1):
        own = g + delta * (s + j - 1)
        held = -(-(s + j - 1 + rules.extra_slots) // rules.block_size)
        piece = own + k + b + m * held
        work += piece
        moment += piece * ((alpha + own) / 2 + behind)
        behind += alpha + own
    end = last + delta * s
    final = end + k + b + m * -(-(s + rules.extra_slots) // rules.block_size)
    length = alpha + beta * (s - 1) + end
    prompt = (beta + b) * (s - 1) + final
    work += prompt
    moment += prompt * (length / 2 + behind)
    alone = length + behind
    early = max(0, s - rules.tokens_cap)
    # Positions before the last chunk, latest first: alpha for each step between.
    for position in range(early):
        moment += (beta + b) * (alpha * (position // rules.tokens_cap + 1) + end / 2)
        moment -= final * beta / 2
    steps = 1
    while steps * rules.tokens_cap < s:
        steps += 1
        alone += alpha
    return work, moment, alone


def _mean_busy_times(work: list[Fraction], arrival: list[Fraction]) -> list[Fraction]:
    """Mean busy times on one machine that serves the smallest work that is there."""
    rest, middle, now = list(work), [Fraction(0)] * len(work), Fraction(0)
    while any(rest):
        there = [i for i in range(len(work)) if rest[i] and arrival[i] <= now]
        coming = [a for a in arrival if a > now]
        if not there:
            now = min(coming)
            continue
        i = min(there, key=lambda i: (work[i], i))
        until = min([now + rest[i], *coming])
        middle[i] += (until - now) * (until + now) / (2 * work[i])
        rest[i] -= until - now
        now = until
    return middle
