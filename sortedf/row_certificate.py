"""Certificates of the fluid bound: rounded memory rows with weights.

Let `K` be the budget in blocks and `w` the blocks that a request holds. For a divisor
`d` from 1 to `K`, with `r = K mod d`, the function

    phi_d(w) = (d - r) floor(w / d) + max(0, w mod d - r)

is superadditive and non-decreasing, so in every step `sum phi_d(w) <= phi_d(K)` over
the running requests (the proof is in `lp.dff`); `d = K` is the memory row itself. Sums
of such rows with weights >= 0 hold as well. In the sum, of capacity `c`, a request has
the volume `v_i = sum_j phi(w_ij)` and the moment `m_i = sum_j phi(w_ij) (2 j - 1)`, and

    TEL  >=  sum_i (B_i + o_i - a_i - m_i / (2 v_i)),

where `B_i` are the mean busy times of divisible work `v_i` on a machine of speed `c`
that always serves the smallest `v` that has arrived (`sortedf.bounds.fluid`). A request
of volume 0 adds `o_i`. Without any row this is `sum_i o_i`.

This file shares no code with the bounds: it adds up `phi` step by step.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sortedf.claim import Claim
from sortedf.errors import CertificateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

CHUNK = 1 << 16
"""Steps of a request summed in one vectorised chunk."""

PRECISION = 2**40
"""Each request's share is rounded down to a multiple of `1 / PRECISION`."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCertificate(Claim):
    """A claimed lower bound and its proof by rounded memory rows.

    Attributes
    ----------
    divisor : int64 array, shape (k,)
        `d` of each row.
    weight : int64 array, shape (k,)
        Weight of each row.
    places, tokens : int
        Weights of the rows of `max_num_seqs` and of `max_batched_tokens`.
    """

    divisor: Ints
    weight: Ints
    places: int = 0
    tokens: int = 0


def rows_prove(instance: Instance, certificate: RowCertificate) -> int:
    """Evaluate the fluid bound on the rows exactly and round it up.

    Raises
    ------
    CertificateError
        If a divisor or a weight is out of range.
    """
    budget = instance.kv_budget // instance.engine.block_size
    rows = list(
        zip(certificate.divisor.tolist(), certificate.weight.tolist(), strict=False)
    )
    _refuse(certificate, budget)
    _refuse_caps(instance, certificate)
    speed = sum(weight * (d - budget % d) * (budget // d) for d, weight in rows)
    speed += certificate.places * (instance.engine.max_num_seqs or 0)
    speed += certificate.tokens * (instance.engine.max_batched_tokens or 0)
    decode, arrival = instance.decode.tolist(), instance.arrival.tolist()
    volume, moment = {}, {}
    total = 0
    for i, (s, o) in enumerate(zip(instance.prefill.tolist(), decode, strict=True)):
        v, m = _volume_and_moment(s, o, rows, budget, instance.engine.block_size)
        # A step takes one of `max_num_seqs`, and the prompt's tokens or, later, one.
        v += certificate.places * o + certificate.tokens * (s + o - 1)
        m += certificate.places * o * o + certificate.tokens * (s + o * o - 1)
        if v:
            volume[i], moment[i] = v, m
        else:
            total += o * PRECISION
    for i, middle in _mean_busy_times(volume, arrival, speed):
        share = middle + decode[i] - arrival[i] - Fraction(moment[i], 2 * volume[i])
        total += share.numerator * PRECISION // share.denominator
    return -(-total // PRECISION)


def _volume_and_moment(
    s: int, o: int, rows: list[tuple[int, int]], budget: int, block: int
) -> tuple[int, int]:
    """Add up the weighted `phi` of the blocks held in the steps `j = 1, ..., o`."""
    # phi is at most the budget, below 2**31, so the sums of a chunk fit 64 bits.
    volume = moment = 0
    for first in range(1, o + 1, CHUNK):
        j = np.arange(first, min(first + CHUNK, o + 1), dtype=np.int64)
        blocks = -(-(s + j) // block)
        for d, weight in rows:
            rest = budget % d
            phi = (d - rest) * (blocks // d) + np.maximum(0, blocks % d - rest)
            here = int(phi.sum())
            volume += weight * here
            from_first = int((phi * (2 * (j - first))).sum())
            moment += weight * (from_first + (2 * first - 1) * here)
    return volume, moment


def _mean_busy_times(
    volume: dict[int, int], arrival: list[int], speed: int
) -> Iterator[tuple[int, Fraction]]:
    """Serve the smallest volume that has arrived; yield (request, mean busy time).

    Work from time `x` to `y` on a request has its middle at `(x + y) / 2`. Times are
    counted in `1 / speed` steps, in which one unit of work is done.
    """
    coming = sorted(volume, key=lambda i: arrival[i], reverse=True)
    left = dict(volume)
    middle = dict.fromkeys(volume, 0)  # twice the middle times the volume
    there: list[tuple[int, int]] = []
    now = 0
    while coming or there:
        if not there:
            now = max(now, arrival[coming[-1]] * speed)
        while coming and arrival[coming[-1]] * speed <= now:
            i = coming.pop()
            heapq.heappush(there, (volume[i], i))
        _, i = there[0]
        spell = left[i]
        if coming:
            spell = min(spell, arrival[coming[-1]] * speed - now)
        middle[i] += spell * (2 * now + spell)
        now += spell
        left[i] -= spell
        if not left[i]:
            heapq.heappop(there)
            yield i, Fraction(middle[i], 2 * volume[i] * speed)


def _refuse(certificate: RowCertificate, budget: int) -> None:
    divisor, weight = certificate.divisor, certificate.weight
    if len(divisor) != len(weight):
        raise CertificateError(
            f"{len(divisor)} divisors but {len(weight)} weights; there must be as many."
        )
    for k, (d, w) in enumerate(zip(divisor.tolist(), weight.tolist(), strict=True)):
        if not 1 <= d <= budget:
            raise CertificateError(
                f"divisor[{k}] = {d} but must be from 1 to {budget} blocks."
            )
        if w < 0:
            raise CertificateError(f"weight[{k}] = {w} but must be 0 or more.")


def _refuse_caps(instance: Instance, certificate: RowCertificate) -> None:
    """Raise if a row has a weight whose cap the engine does not have."""
    engine = instance.engine
    for name, weight, cap in (
        ("places", certificate.places, engine.max_num_seqs),
        ("tokens", certificate.tokens, engine.max_batched_tokens),
    ):
        if weight < 0 or (weight and cap is None):
            allowed = "0" if cap is None else "0 or more"
            raise CertificateError(f"{name} = {weight} but must be {allowed}.")
