"""A certificate of a lower bound by prices of a step's capacities, step by step.

Every step takes at least `alpha` seconds. In it at most `K` requests run, which hold at
most `M` blocks of KV, and at most `B` tokens are processed. In step `t` let a request
cost `k_t`, a block `m_t` and a token `b_t`, all 0 or more, **non-increasing** in `t`
and 0 in the end.

**Charges.** Let token `j` of request `i` be made in step `t_j`, `t_1 < ... < t_o`. In
that step the request runs and holds `w_j` blocks or more, those of its prompt and the
`j - 1` tokens before, and at least one token of it is processed. Charge it `k + m w_j`
there, and `b` if `j >= 2`. Charge each position of its prompt `b` in the step in which
it is computed for the last time before token 1. The charges of a step are at most
`K k_t + M m_t + B b_t`, whatever is cut, evicted, computed again or left idle.

**A request alone.** Let `t = t_o - o`. Token `j` is made in step `t + j` or sooner, and
at most `B` positions of the prompt are computed in a step, so that those which are at
least `x B` before its end are computed in step `t + 1 - x` or sooner. As prices do not
increase, the request is charged at least

    c_i(t) = sum_j (k + m w_j)_{t+j} + sum_{j>=2} b_{t+j} + sum_x b_{t+1-x} n_x,

`n_x` being the positions number `x B` to `(x + 1) B - 1` from the end. In all

    sum of last steps  >=  sum_i min_t [t + o_i + c_i(t)] - sum_t (K k + M m + B b)_t,

where `t` goes from `ceil(s / B) - 1`, the first possible, until the whole prompt is
computed behind the last price, after which a bracket only grows. Times are at least
`alpha` times steps.

With prices that increase somewhere this is false where requests may be evicted: they
can let expensive steps pass. Prices are integers over `2^32`, in steps, and all is
exact. This file shares no code with the search for prices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sortedf.engine_plan.seconds_certificate import UNITS, SecondsClaim, refuse_other
from sortedf.errors import CertificateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Ints = NDArray[np.int64]

PRICE_SCALE = 2**32
"""Prices are integers over this, in steps."""

MAX_STEPS = 2**24
"""Last step with a price, at most."""

MAX_COST = 2**62
"""Sums of prices that are not below this are refused."""


@dataclass(frozen=True, slots=True)
class StepwiseCertificate(SecondsClaim):
    """A claim about total latency, and its proof by prices of each step.

    Of the coefficients only `alpha` is used.

    Attributes
    ----------
    ends : tuple of int
        Last step of each stretch of steps with equal prices, ascending.
    prices : tuple of tuple of int
        `k, m, b` of a step in each stretch, over `PRICE_SCALE`.
    """

    ends: tuple[int, ...]
    prices: tuple[tuple[int, ...], ...]


def stepwise_prove(workload: EngineWorkload, certificate: StepwiseCertificate) -> int:
    """Evaluate a certificate: the lower bound that it proves, in 1e-15 seconds.

    It can be below or above the certificate's own claim.

    Raises
    ------
    CertificateError
        If the certificate is for another workload, or its numbers are out of range.
    """
    refuse_other(workload, certificate)
    _refuse(workload, certificate)
    lengths = np.diff(certificate.ends, prepend=0)
    k, m, b = (
        np.repeat(np.array(column, dtype=np.int64), lengths)
        for column in zip(*certificate.prices, strict=True)
    )
    rules = workload.rules
    spent = sum(
        cap * int(price.sum())
        for cap, price in zip(
            (rules.seqs_cap, rules.num_blocks, rules.tokens_cap), (k, m, b), strict=True
        )
    )
    pairs = zip(workload.prefill.tolist(), workload.decode.tolist(), strict=True)
    sums = _Sums(workload, (k, m, b))
    total = sum(count * sums.least(s, o) for (s, o), count in Counter(pairs).items())
    arrived = sum(Fraction(a) for a in workload.arrival_s.tolist()) * UNITS
    steps = certificate.coefficient[0] * (total - spent) // PRICE_SCALE
    return max(steps + (-arrived) // 1, 0)


class _Sums:
    """Prices up to each step, and sums of those of blocks in strides of a block.

    Arrays go on behind the last price as far as any request does. Sums of sums may wrap
    around 64 bits; differences of them are right, since they fit.
    """

    def __init__(self, workload: EngineWorkload, prices: tuple[Ints, ...]) -> None:
        self.rules = workload.rules
        size = self.rules.block_size
        self.last = len(prices[0])
        longest = int(workload.decode.max(initial=1)) + int(
            workload.prefill.max(initial=1)
        )
        self.k, self.m, self.b = (
            np.concatenate([[0], np.cumsum(np.pad(p, (0, longest + size)))])
            for p in prices
        )
        # strides[x + size] = m[x] + m[x - size] + m[x - 2 size] + ...
        rows = np.pad(self.m, (size, -len(self.m) % size)).reshape(-1, size)
        self.strides = np.cumsum(rows, axis=0).ravel()

    def least(self, s: int, o: int) -> int:
        """`min_t [t + o + c(t)]`, over `PRICE_SCALE`."""
        cap = self.rules.tokens_cap
        first = -(-s // cap) - 1
        stop = first + self.last + 1

        def at(sums: Ints, after: int) -> Ints:
            """Return sums up to step `t + after`, for each start `t`."""
            return sums[first + after : stop + after]

        cost = np.arange(first + o, stop + o) * PRICE_SCALE
        cost += at(self.k, o) - at(self.k, 0) + at(self.b, o) - at(self.b, 1)
        for x in range(first + 1):
            positions = min(cap, s - x * cap)
            cost += positions * (at(self.b, 1 - x) - at(self.b, -x))
        return int((cost + self._blocks(at, s, o)).min())

    def _blocks(self, at: Callable[[Ints, int], Ints], s: int, o: int) -> Ints:
        """Price of the blocks that are held, for each start.

        One block more is held from token `full + 1`, `full + size + 1`, ... on.
        """
        size, extra = self.rules.block_size, self.rules.extra_slots
        begin, end = (self.rules.blocks(s + x + extra) for x in (0, o - 1))
        full = begin * size - s - extra + 1
        cost = end * at(self.m, o) - begin * at(self.m, 0)
        if end > begin:
            last = full + (end - begin - 1) * size
            cost -= at(self.strides, last + size) - at(self.strides, full)
        return cost


def _refuse(workload: EngineWorkload, certificate: StepwiseCertificate) -> None:
    """Raise if stretches or prices are out of range."""
    ends, prices = certificate.ends, certificate.prices
    if not ends or len(ends) != len(prices):
        raise CertificateError("ends and prices must be equally long, 1 or more.")
    if ends[0] < 1 or ends[-1] > MAX_STEPS or any(b <= a for a, b in pairwise(ends)):
        raise CertificateError(f"ends must ascend from 1 or more to {MAX_STEPS}.")
    if any(len(row) != 3 or min(row) < 0 for row in prices):
        raise CertificateError("prices must be rows of 3 integers, 0 or more.")
    for before, after in pairwise(prices):
        if any(b > a for a, b in zip(before, after, strict=True)):
            raise CertificateError(
                "prices must not increase: engines may pause a request in expensive "
                "steps."
            )
    longest = int(workload.decode.max(initial=1)) + int(workload.prefill.max(initial=1))
    each = (ends[-1] + longest) * (
        PRICE_SCALE
        + prices[0][0]
        + prices[0][1] * workload.rules.num_blocks
        + prices[0][2] * (longest + 1)
    )
    if each >= MAX_COST:
        raise CertificateError(f"prices are too large: sums of them reach {each}.")
