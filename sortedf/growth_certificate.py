"""Certificates by growth rows, which prove more than prices of KV alone.

While `k` requests run and none completes, KV grows by `k` tokens a step. For real
`theta > 0` and integers `H >= 0`, with `u_i` the tokens that request `i` holds in step
`t` and `N(c)` the number of requests that complete in step `c`, every schedule obeys

    sum_i [u_i + H min(1, u_i / theta)]
        - (M / theta) sum_{c >= t} (H - (c - t))^+ N(c)  <=  M

(the proof is in `lp.growth`, where such rows are found). Prices `nu_t >= 0` of these
rows, multiplied by `theta`, prove that no schedule has a TEL below

    sum_i min_{t >= a_i} [t + o_i - a_i - reward(t + o_i)
                          + sum_j nu_{t+j} (theta u_ij + H_{t+j} min(theta, u_ij))]
    - theta M sum_t nu_t,      reward(c) = M sum_{t <= c} nu_t (H_t - (c - t))^+.

This file shares no code with `lp`: it evaluates every start of every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_TOKENS
from sortedf.claim import Claim
from sortedf.errors import CertificateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]


CHUNK = 4096
"""Start steps evaluated in one vectorised chunk."""

MAX_HORIZON = 2**24
"""Steps by which tables may extend beyond the prices, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthCertificate(Claim):
    """A claimed lower bound and its proof by growth rows.

    Attributes
    ----------
    scale_bits : int
        `q`: prices are multiples of `2^-q`.
    theta : int
        Tokens held from which a request counts fully in a growth row, at least 1.
    horizon : int64 array, shape (T,)
        `H_t` for the steps `t = 1, ..., T`.
    price : int64 array, shape (T,)
        `nu_t 2^q`.
    """

    scale_bits: int
    theta: int
    horizon: Ints
    price: Ints


def growth_rows_prove(instance: Instance, certificate: GrowthCertificate) -> int:
    """Evaluate the prices exactly; the result is rounded up, since TEL is an integer.

    Raises
    ------
    CertificateError
        If numbers are out of range or too large for exact arithmetic.
    """
    price, horizon, theta = certificate.price, certificate.horizon, certificate.theta
    _refuse(instance, certificate)
    one = 1 << certificate.scale_bits
    steps = len(price) + int(horizon.max(initial=0))
    padding = np.zeros(steps - len(price), dtype=np.int64)
    # Entry t of each table sums over the steps 1, ..., t.
    by_token, by_token_at = _tables(np.concatenate([price * theta, padding]))
    by_whole, by_whole_at = _tables(np.concatenate([price * horizon, padding]))
    reward = _rewards(price, horizon, steps) * instance.usable_kv
    total = -theta * instance.usable_kv * sum(price.tolist())
    requests = (instance.prefill, instance.decode, instance.arrival)
    top = int(reward.max())
    for s, o, a in zip(*(x.tolist() for x in requests), strict=True):
        last = max(a, steps)  # after this step prices and rewards are 0
        best = (last + o) * one
        for first in range(a, last, CHUNK):
            if (first + o) * one - top >= best:
                break
            t = np.arange(first, min(first + CHUNK, last))
            end = np.minimum(t + o, steps)
            # From here on the request holds more than theta tokens.
            whole = np.minimum(t + min(max(theta - s, 0), o), steps)
            cost = (s - t) * (by_token[end] - by_token[t])
            cost += by_token_at[end] - by_token_at[t]
            cost += (s - t) * (by_whole[whole] - by_whole[t])
            cost += by_whole_at[whole] - by_whole_at[t]
            cost += theta * (by_whole[end] - by_whole[whole]) - reward[end]
            best = min(best, int((cost + (t + o) * one).min()))
        total += best - a * one
    bound: int = -(-total >> certificate.scale_bits)
    return bound


def _tables(value: Ints) -> tuple[Ints, Ints]:
    """Tabulate the sums of `value_u` and of `u value_u` up to each step."""
    step = np.arange(1, len(value) + 1)
    zero = np.zeros(1, dtype=np.int64)
    plain = np.concatenate([zero, np.cumsum(value)])
    return plain, np.concatenate([zero, np.cumsum(value * step)])


def _rewards(price: Ints, horizon: Ints, steps: int) -> Ints:
    """`sum_{t <= c} nu_t (H_t - (c - t))^+` for `c = 0, ..., steps`.

    Row `t` adds `nu_t H_t` in step `t` and loses `nu_t` in each of the `H_t` steps
    after it.
    """
    change = np.zeros(steps + 2, dtype=np.int64)
    slope = np.zeros(steps + 2, dtype=np.int64)
    t = np.arange(1, len(price) + 1)
    change[1 : len(price) + 1] = price * horizon
    np.subtract.at(slope, t + 1, price)
    np.add.at(slope, t + horizon + 1, price)
    rewards: Ints = np.cumsum(change + np.cumsum(slope))[: steps + 1]
    return rewards


def _refuse(instance: Instance, certificate: GrowthCertificate) -> None:
    """Raise if a number is out of range or a bracket could exceed 64 bits.

    Intermediate sums may wrap around; a bracket that fits is still right. A request
    that holds `u` tokens pays at most `nu (theta + H) u`. Of the rows that reward a
    completion there are at most as many as the largest `H`.
    """
    price, horizon, theta = certificate.price, certificate.horizon, certificate.theta
    if len(price) != len(horizon):
        raise CertificateError(
            f"{len(price)} prices but {len(horizon)} horizons; there must be as many."
        )
    for name, array in (("price", price), ("horizon", horizon)):
        if len(array) and int(array.min()) < 0:
            t = int(np.argmax(array < 0))
            raise CertificateError(f"{name}[{t}] = {array[t]} but must be 0 or more.")
    if theta < 1:
        raise CertificateError(f"theta = {theta} but must be 1 or more.")
    if theta > MAX_TOKENS:
        raise CertificateError(
            f"theta = {theta} is too large: it must be from 1 to {MAX_TOKENS}."
        )
    if not 0 <= certificate.scale_bits <= 62:
        raise CertificateError(
            f"scale_bits = {certificate.scale_bits} but must be from 0 to 62."
        )
    reach = int(horizon.max(initial=0))
    if reach > MAX_HORIZON:
        raise CertificateError(
            f"a horizon is {reach} but must be {MAX_HORIZON} at most."
        )
    dearest = int(price.max(initial=0))
    weights = zip(price.tolist(), horizon.tolist(), strict=True)
    longest = max((nu * h for nu, h in weights), default=0)
    pairs = zip(instance.decode.tolist(), instance.peak.tolist(), strict=True)
    largest = max((o * peak for o, peak in pairs), default=0)
    last = max(len(price) + reach, int(instance.arrival.max(initial=0)))
    last += int(instance.decode.max(initial=0))
    most = (last << certificate.scale_bits) + (theta * dearest + longest) * largest
    most += longest * instance.usable_kv * reach
    if most >= 2**63:
        raise CertificateError("the numbers are too large for exact 64-bit arithmetic.")
