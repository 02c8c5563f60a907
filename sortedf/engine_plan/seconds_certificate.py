"""A certificate of a lower bound in seconds: prices of a step's capacities.

A step that processes `P` prompt tokens and `D` tokens of requests that decode, over `U`
tokens of KV, takes at least `alpha + beta P + gamma D + delta U`. In it at most `K`
requests run, which hold at most `M` blocks of KV, and at most `B` tokens are processed.
For prices `k, m, b >= 0` of a request, a block and a token with `K k + M m + B b <=
alpha`, give each request

- for its token `j >= 2` the work `own_j + k + b + m w_j`, with `own_j = g +
  delta (s + j - 1)` and `w_j` the blocks that it holds; `g = min(beta, gamma)` if an
  evicted request computes its tokens again (a token may then be made at the end of a
  prefill), else `gamma`;
- for its prompt and its first token `(beta + b)(s - 1) + F`, where `F = g' + delta s +
  k + b + m w_1` belongs to the last position, which costs `g' = min(beta, gamma)`
  where it is a chunk of its own.

**The work fits.** The work of a step's tokens is at most its duration, so work that is
spread evenly over each step is served at a speed of at most 1. The engine may cut
prompts, evict, compute again (each position counts once, when it is computed for the
last time before its token) and idle. So the mean busy times
`B_i` of the requests sum up to at least those of one machine that serves the smallest
work `W_i` that has arrived first (`sortedf.bounds.fluid`, where the swap is).

**Work is far from the end.** A step with token `j >= 2` takes at least `e_j = alpha +
own_j`, and every later token has a step of its own, so that work is on average at least
`e_j / 2 + T_j` before completion, `T_j = e_{j+1} + ... + e_o`. For a prompt done in one
step of `L = alpha + beta (s - 1) + g' + delta s` it is `L / 2 + T_1`. Let it be cut so
that `x` positions are computed before the last chunk. They come `alpha` or more
earlier, and behind the whole last position; the work of the last position comes `beta x
/ 2` later than with the whole prompt. In all the sum of work times distance differs by
at least

    (beta + b) (alpha h(x) + (g' + delta s) x / 2) - F beta x / 2,

with `h(x)` counting each of these positions by the steps that lie between it and the
last chunk: `h(x) = B (1 + ... + q) + r (q + 1)` for `x = q B + r`. As `h(x) >= x` and
`F <= g' + delta s + alpha` it is not negative and grows with `x`; and `x >= s - B`.

So the completion times sum up to at least `sum B_i + d_i`, `d_i` the mean distance by
work. All is exact: coefficients and prices are integers of 1e-15 seconds (any that are
not above the engine's prove a bound), and each request's share is rounded down once.
If a step takes the largest of several forms, it is at least any mean of them.

This file shares no code with the search for prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sortedf.errors import CertificateError
from sortedf.fluid_schedule import mean_busy_times

if TYPE_CHECKING:
    from sortedf.engine_plan.workload import EngineWorkload

UNITS = 10**15
"""Units of time in a second; all integers here count them."""

MIX_SCALE = 2**20
"""Largest sum of the weights of an engine's step times."""


@dataclass(frozen=True, slots=True)
class SecondsClaim:
    """A claimed lower bound in seconds, and a step time that is at most the engine's.

    Attributes
    ----------
    workload_sha256 : str
        `EngineWorkload.sha256` of the workload.
    bound : int
        The claimed lower bound on total latency, in 1e-15 seconds.
    mix : tuple of int
        Weight of each of the engine's step times, over `MIX_SCALE`.
    coefficient : tuple of int
        `alpha, beta, gamma, delta`, in 1e-15 seconds.
    """

    workload_sha256: str
    bound: int
    mix: tuple[int, ...]
    coefficient: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SecondsCertificate(SecondsClaim):
    """A claim about total latency in seconds, and its proof by prices.

    Attributes
    ----------
    price : tuple of int
        `k, m, b`: of a request, a block and a token in a step, in 1e-15 seconds.
    """

    price: tuple[int, ...]


def coefficients(workload: EngineWorkload, mix: tuple[int, ...]) -> tuple[int, ...]:
    """Return `alpha, beta, gamma, delta` of a mean of step times, rounded down.

    Floats are converted exactly.
    """
    return tuple(
        int(
            sum(
                Fraction(getattr(time, name)) * weight
                for time, weight in zip(workload.step_times, mix, strict=True)
            )
            * UNITS
            // MIX_SCALE
        )
        for name in ("constant_s", "prefill_token_s", "running_s", "kv_token_s")
    )


def seconds_prove(workload: EngineWorkload, certificate: SecondsCertificate) -> int:
    """Evaluate a certificate: the lower bound that it proves, in 1e-15 seconds.

    It can be below or above the certificate's own claim.

    Raises
    ------
    CertificateError
        If the certificate is for another workload, or its numbers are out of range.
    """
    refuse_other(workload, certificate)
    _refuse(workload, certificate)
    arrival = [Fraction(a) * UNITS for a in workload.arrival_s.tolist()]
    lengths = zip(workload.prefill.tolist(), workload.decode.tolist(), strict=True)
    work, moment, alone = [], [], []
    for s, o in lengths:
        own, twice, least = _request(workload, certificate, s, o)
        work.append(own)
        moment.append(twice)
        alone.append(least)
    total = 0
    come = [a.numerator // a.denominator for a in arrival]
    for i, busy in enumerate(mean_busy_times(come, work, 1)):
        if work[i]:
            total += (busy + moment[i]) // (2 * work[i]) + (-arrival[i]) // 1
        else:
            total += alone[i]
    return max(total, sum(alone))


def _request(
    workload: EngineWorkload, certificate: SecondsCertificate, s: int, o: int
) -> tuple[int, int, int]:
    """Work, twice the sum of work times distance, and least latency of a request."""
    alpha, beta, gamma, delta = certificate.coefficient
    k, m, b = certificate.price
    cap = workload.rules.tokens_cap
    last = min(beta, gamma)
    g = last if workload.rules.eviction == "recompute" else gamma
    # e_j = c + delta j, and e_j + 2 T_j = f - 2 c j - delta j^2.
    c = alpha + g + delta * (s - 1)
    f = c * (1 + 2 * o) + delta * o * (o + 1)
    behind = 2 * c * (o - 1) + delta * (o * (o + 1) - 2)
    n0, n1, n2, n3 = (_powers(o, k) - 1 for k in range(4))
    w0, w1, w2 = _blocks(s + workload.rules.extra_slots, o, workload.rules.block_size)
    held = -(-(s + workload.rules.extra_slots) // workload.rules.block_size)
    end = last + delta * s
    final = end + k + b + m * held
    first = (beta + b) * (s - 1) + final
    each = c - alpha + k + b
    work = each * n0 + delta * n1 + m * w0 + first
    twice = (
        each * (f * n0 - 2 * c * n1 - delta * n2)
        + delta * (f * n1 - 2 * c * n2 - delta * n3)
        + m * (f * w0 - 2 * c * w1 - delta * w2)
    )
    alone = alpha + beta * (s - 1) + end
    twice += first * (alone + behind)
    alone += behind // 2
    x = s - cap
    if x > 0:
        q, r = divmod(x, cap)
        gaps = cap * q * (q + 1) // 2 + r * (q + 1)
        twice += (beta + b) * (2 * alpha * gaps + end * x) - final * beta * x
        alone += alpha * (-(-s // cap) - 1)
    return work, twice, alone


def _powers(n: int, k: int) -> int:
    """`1^k + ... + n^k`."""
    if k == 0:
        return n
    if k == 1:
        return n * (n + 1) // 2
    if k == 2:
        return n * (n + 1) * (2 * n + 1) // 6
    return (n * (n + 1) // 2) ** 2


def _blocks(tokens: int, o: int, size: int) -> tuple[int, int, int]:
    """Sum up `w_j`, `w_j j` and `w_j j^2` over `j = 2, ..., o`.

    `tokens` are held for the first token. With `y = j + z` the tokens for token `j`,
    `w_j = ceil(y / size)`.
    """
    z = tokens - 1
    high, low = _blocks_up_to(z + o, size), _blocks_up_to(z + 1, size)
    p0, p1, p2 = (a - b for a, b in zip(high, low, strict=True))
    return p0, p1 - z * p0, p2 - 2 * z * p1 + z * z * p0


def _blocks_up_to(y: int, size: int) -> tuple[int, int, int]:
    """Sum up `ceil(t / size) t^k` over `t = 1, ..., y`, for k = 0, 1, 2."""
    full, rest = divmod(y, size)
    # Block c holds t = (c - 1) size + r; sums of c, c (c - 1) and c (c - 1)^2.
    c1 = _powers(full, 1)
    c2 = _powers(full, 2) - c1
    c3 = _powers(full, 3) - 2 * _powers(full, 2) + c1
    r1, r2 = _powers(size, 1), _powers(size, 2)
    last, before = full + 1, full * size
    q1, q2 = _powers(rest, 1), _powers(rest, 2)
    return (
        c1 * size + last * rest,
        c2 * size * size + c1 * r1 + last * (before * rest + q1),
        c3 * size**3
        + 2 * c2 * size * r1
        + c1 * r2
        + last * (before * before * rest + 2 * before * q1 + q2),
    )


def refuse_other(workload: EngineWorkload, claim: SecondsClaim) -> None:
    """Raise if a certificate is for another workload, or its step time is too long."""
    if claim.workload_sha256 != workload.sha256():
        raise CertificateError(
            "the certificate is for another workload: requests, arrivals, the engine's "
            "rules and its step times must be the same."
        )
    refuse_list("mix", claim.mix, len(workload.step_times))
    refuse_list("coefficient", claim.coefficient, 4)
    if sum(claim.mix) > MIX_SCALE:
        raise CertificateError(
            f"mix adds up to {sum(claim.mix)}, which is above {MIX_SCALE}."
        )
    most = coefficients(workload, claim.mix)
    for value, limit in zip(claim.coefficient, most, strict=True):
        if value > limit:
            raise CertificateError(
                f"coefficient = {list(claim.coefficient)} is above the engine's "
                f"step time, {list(most)}."
            )


def refuse_list(name: str, values: tuple[int, ...], size: int) -> None:
    """Raise if there are not `size` integers, 0 or more."""
    if len(values) != size or any(value < 0 for value in values):
        raise CertificateError(
            f"{name} = {list(values)} but must be {size} integers, 0 or more."
        )


def _refuse(workload: EngineWorkload, certificate: SecondsCertificate) -> None:
    """Raise if prices are out of range."""
    rules = workload.rules
    refuse_list("price", certificate.price, 3)
    k, m, b = certificate.price
    spent = rules.seqs_cap * k + rules.num_blocks * m + rules.tokens_cap * b
    if spent > certificate.coefficient[0]:
        raise CertificateError(
            f"price = {list(certificate.price)} charges {spent} for a full step, which "
            f"is above the constant {certificate.coefficient[0]}."
        )
