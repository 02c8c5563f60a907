"""A certificate of a lower bound in seconds: prices over time and by length of step.

`sortedf.engine_plan.seconds_certificate` divides the constant `alpha` of a step in the
same way in every step, as if all were full, and supposes that a request may decode as
fast as if it were alone. An engine cannot have both: short steps are fast for those who
run, but few share the constant of each. This certificate charges the shares of a step
by its length, and lets each token of each request choose its step.

**Work.** Charge the tokens of a request `own` as there: `own_j = g + delta (s + j - 1)`
for token `j >= 2`, `beta` for each position of the prompt but the last, and `F = g' +
delta s` for that one. Let `z` be the sum of these charges in a step; it takes at least
`e = alpha + z`. Ranges of `z` have prices `l, k, m, b >= 0` of own work, a request, a
block and a token with `l + K k + M m + B b <= alpha`. In a step of the range a token `j
>= 2` has the work `own_j + c(z)` with the share

    c(z) = k + b + m w_j + l own_j / z

of the constant, and the work of all tokens adds up to `e` at most. A position of a
prompt has the least share of all ranges, where `z` is below the range's end; the
largest `z` is `max(beta, gamma) min(B, sum of s) + delta M`.

**Prices over time.** Let `mu(t)` be non-increasing, convex, piecewise linear, and 0 in
the end. Work that is spread evenly over its step has a density of 1 at most, so

    sum C_i >= sum_i [ C_i + work of i times mu, over time ] - integral of mu.

Where `mu` has the value `p` and the slope `-q` at `C_i`, it is at least `p + q x` at a
distance of `x` before; so the bracket is at least `C_i + q v_i(p / q)`, `v_i(r)` being
the least sum of work times `(r + x)` over all choices of steps. On a piece of `mu` that
is linear in `C_i` for each choice, and least at an end of the piece.

**The least of a request.** The distance of token `j` is `e_j / 2 + e_{j+1} + ... +
e_o`. Own work times distance is the sum of `e_j O_j` with `O_j` all work of the prompt,
own work of the tokens before `j` and half of its own; the share is at least `(alpha +
own_j) (N_j + 1/2)` away, `N_j = o - j`. So each token chooses for itself:

    h_j = min over z >= own_j of  c(z) (r + (alpha + own_j) (N_j + 1/2))
                                  + (alpha + z) O_j,

a minimum of `a + b / z + d z` in each range: `a + 2 sqrt(b d)` unless an end is better.
In a row of tokens that are all charged the first one's `own` and blocks, coefficients
are linear in `j`, and a minimum of linear functions is concave: the sum over the row is
at least the mean of its first and its last `h_j` times its length. In the same way
`v_i(r)` is concave in `r`, and lies above its chord between two ratios `r`.

The prompt is as in the other certificate: its distance and how cutting it changes that
are proven there for any share of a position, and a share of the last one of at most
`alpha`.

All is exact, in integers of 1e-15 seconds, rounded down. This file shares no code with
the search for prices.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING

from sortedf.engine_plan.seconds_certificate import UNITS, SecondsClaim, refuse_other
from sortedf.errors import CertificateError

if TYPE_CHECKING:
    from sortedf.engine_plan.workload import EngineWorkload

ROWS = 8
"""Largest number of rows into which the tokens of an answer are divided."""


@dataclass(frozen=True, slots=True)
class TimedCertificate(SecondsClaim):
    """A claim about total latency in seconds, and its proof by prices over time.

    Attributes
    ----------
    ranges : tuple of tuple of int
        For each range of step lengths its first `z`, and `l, k, m, b`, in 1e-15
        seconds. The first one begins at 0, and each ends where the next one begins.
    knots : tuple of tuple of int
        Times in 1e-15 seconds, from 0 on, and the values of `mu`, down to 0.
    ratios : tuple of int
        Values of `r` between which chords are taken, in 1e-15 seconds, from 0 on.
    """

    ranges: tuple[tuple[int, ...], ...]
    knots: tuple[tuple[int, ...], ...]
    ratios: tuple[int, ...]


def timed_prove(workload: EngineWorkload, certificate: TimedCertificate) -> int:
    """Evaluate a certificate: the lower bound that it proves, in 1e-15 seconds.

    It can be below or above the certificate's own claim.

    Raises
    ------
    CertificateError
        If the certificate is for another workload, or its numbers are out of range.
    """
    refuse_other(workload, certificate)
    _refuse(workload, certificate)
    charges = _Charges(workload, certificate)
    ends, last = _ends(certificate), certificate.knots[-1][0]
    lengths = zip(workload.prefill.tolist(), workload.decode.tolist(), strict=True)
    total = 0
    for (s, o), count in Counter(lengths).items():
        least = charges.least(s, o, certificate.ratios)
        low = min(
            time + (c * least[j] + d * least[j + 1]) // scale
            for time, j, c, d, scale in ends
        )
        total += count * min(low, last)
    area = sum(
        (p + after) * (until - time)
        for (time, p), (until, after) in pairwise(certificate.knots)
    )
    arrived = sum(Fraction(a) for a in workload.arrival_s.tolist()) * UNITS
    return max(total - (area + 1) // 2 + (-arrived) // 1, 0)


def _ends(certificate: TimedCertificate) -> list[tuple[int, int, int, int, int]]:
    """Return time, j, c, d and scale of both ends of each piece of `mu`.

    There `q v(r)` is at least `(c v_j + d v_{j+1}) / scale`, by the chord between the
    ratios `j` and `j + 1`, or by the last `v`, as `v` does not fall.
    """
    ratios, found = certificate.ratios, []
    for (time, p), (until, after) in pairwise(certificate.knots):
        fall, long = p - after, until - time
        for at, price in ((time, p), (until, after)):
            j = bisect_right(ratios, price * long // fall) - 1
            if j >= len(ratios) - 1:
                found.append((at, len(ratios) - 2, 0, fall, long))
                continue
            low, high = ratios[j], ratios[j + 1]
            c, d = fall * high - price * long, price * long - fall * low
            found.append((at, j, c, d, long * (high - low)))
    return found


class _Charges:
    """Charges of a certificate, and the least of each request by ratio."""

    def __init__(self, workload: EngineWorkload, certificate: TimedCertificate) -> None:
        self.rules = rules = workload.rules
        self.alpha, self.beta, gamma, self.delta = certificate.coefficient
        self.last = min(self.beta, gamma)
        self.g = self.last if rules.eviction == "recompute" else gamma
        most = min(rules.tokens_cap, sum(workload.prefill.tolist()))
        longest = max(self.beta, gamma) * most + self.delta * rules.usable_kv
        starts = [first for first, *_ in certificate.ranges]
        ends = [*starts[1:], max(longest, starts[-1]) + 1]
        self.ranges = [
            (first, end, own_share, k + b, m, b)
            for (first, own_share, k, m, b), end in zip(
                certificate.ranges, ends, strict=True
            )
        ]

    def least(self, s: int, o: int, ratios: tuple[int, ...]) -> list[int]:
        """`v(r)` for each ratio, rounded down."""
        work, twice = self.prompt(s)
        found = [2 * r * work + twice for r in ratios]
        rows, before = min(ROWS, o - 1), work
        for row in range(rows):
            first = 2 + (o - 1) * row // rows
            size = 2 + (o - 1) * (row + 1) // rows - first
            own = self.g + self.delta * (s + first - 1)
            total = size * own + self.delta * (size * (size - 1) // 2)
            held = self.rules.blocks(s + first - 1 + self.rules.extra_slots)
            shares = [
                (max(begin, own), end, fixed + m * held, own_share * own)
                for begin, end, own_share, fixed, m, _ in self.ranges
                if end > own
            ]
            behind, near = o - first, o - first - size + 1
            ahead, far = 2 * before + own, 2 * before + own * (2 * size - 1)
            for k, r in enumerate(ratios):
                one = self.token(shares, 2 * r, own, behind, ahead)
                two = self.token(shares, 2 * r, own, near, far)
                found[k] += 2 * r * total + size * (one + two) // 2
            before += total
        return [value // 2 for value in found]

    def token(
        self,
        shares: list[tuple[int, int, int, int]],
        twice_r: int,
        own: int,
        behind: int,
        twice_ahead: int,
    ) -> int:
        """Twice `h_j`, rounded down: the share and the length of the best step."""
        price = twice_r + (self.alpha + own) * (2 * behind + 1)
        return self.alpha * twice_ahead + min(
            fixed * price + _least_sum(own_share * price, twice_ahead, begin, end)
            for begin, end, fixed, own_share in shares
        )

    def prompt(self, s: int) -> tuple[int, int]:
        """Work of a prompt, and twice its sum of work times distance in its steps."""
        end = self.last + self.delta * s
        held = self.rules.blocks(s + self.rules.extra_slots)
        each = self.beta + min(
            b + own_share * self.beta // until
            for _, until, own_share, _, _, b in self.ranges
        )
        final = end + min(
            fixed + m * held + own_share * min(end, until) // until
            for _, until, own_share, fixed, m, _ in self.ranges
        )
        work = each * (s - 1) + final
        twice = work * (self.alpha + self.beta * (s - 1) + end)
        cap = self.rules.tokens_cap
        if (x := s - cap) > 0:
            q, r = divmod(x, cap)
            gaps = cap * q * (q + 1) // 2 + r * (q + 1)
            twice += each * (2 * self.alpha * gaps + end * x) - final * self.beta * x
        return work, twice


def _least_sum(b: int, d: int, begin: int, end: int) -> int:
    """Return the least `b / z + d z` over `begin <= z <= end`, rounded down."""
    if b <= d * begin * begin:
        return b // begin + d * begin if begin else 0
    if b >= d * end * end:
        return b // end + d * end
    return isqrt(4 * b * d)


def _refuse(workload: EngineWorkload, certificate: TimedCertificate) -> None:
    """Raise if ranges, knots or ratios are out of range."""
    rules = workload.rules
    for name, width in (("ranges", 5), ("knots", 2)):
        values = getattr(certificate, name)
        good = all(len(row) == width and min(row) >= 0 for row in values)
        if not good or not values or values[0][0] != 0:
            raise CertificateError(
                f"{name} must be rows of {width} integers, 0 or more, the first one "
                "from 0 on."
            )
    for name, column in (
        ("ranges", [row[0] for row in certificate.ranges]),
        ("knots", [row[0] for row in certificate.knots]),
        ("ratios", list(certificate.ratios)),
    ):
        if any(b <= a for a, b in pairwise(column)):
            raise CertificateError(f"{name} must be in ascending order.")
    if len(certificate.ratios) < 2 or certificate.ratios[0] != 0:
        raise CertificateError("ratios must be two or more integers, from 0 on.")
    for _, own_share, k, m, b in certificate.ranges:
        spent = rules.seqs_cap * k + rules.num_blocks * m + rules.tokens_cap * b
        if own_share + spent > certificate.coefficient[0]:
            raise CertificateError(
                f"a range charges {own_share + spent} for a full step, which is above "
                f"the constant {certificate.coefficient[0]}."
            )
    pieces = [
        (p - after, until - time)
        for (time, p), (until, after) in pairwise(certificate.knots)
    ]
    steeper = any(a * d < c * b for (a, b), (c, d) in pairwise(pieces))
    if steeper or any(fall < 1 for fall, _ in pieces) or certificate.knots[-1][1]:
        raise CertificateError(
            "knots must have falling values that form a convex function down to 0."
        )
    if not pieces:
        raise CertificateError("knots must be two or more rows.")
