"""Rows implied by the memory row because requests are indivisible.

Let `K` be the capacity and `w` the weights of the requests running in a step, so
`sum w <= K`, all integers. For a divisor `d` from 1 to `K`, with `r = K mod d`, let

    phi(w) = (d - r) floor(w / d) + max(0, w mod d - r).

Then `sum phi(w) <= phi(K) = (d - r) floor(K / d)`: `phi` is a dual feasible function.

*Proof.* `phi` is non-decreasing, so `sum phi(w) <= phi(sum w) <= phi(K)` follows once
`phi(x) + phi(y) <= phi(x + y)`. Let `a`, `b` be the residues of `x`, `y` modulo `d`;
the quotients are additive, so only residues matter.

* If `a + b < d`, the left side is `(a - r) + (b - r)`, `a - r`, `b - r` or 0, and none
  of these is above the right side `(a + b - r)^+`.
* Otherwise the right side is `d - r + (a + b - d - r)^+`. With both residues above `r`
  the left side is `a + b - 2 r = d - r + (a + b - d - r)`. With one above `r` it is
  less than `d - r`, with none it is 0. QED.

It is mixed-integer rounding of `sum (w / d) x <= K / d`. With `d = K` it is the memory
row itself; with `d = floor(K / (k + 1)) + 1` it nearly counts requests: of those that
hold more than `K / (k + 1)` at most `k` run at once. Sums of such rows with weights
`>= 0` hold as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Numbers = NDArray[Any]
    """Integers: int64, or Python integers for exact results of any size."""


@dataclass(frozen=True, slots=True)
class RoundedRow:
    """The row of one divisor.

    Attributes
    ----------
    capacity : int
        `K`, in blocks (tokens if blocks have one token).
    divisor : int
        `d`, from 1 to `K`.
    """

    capacity: int
    divisor: int

    @property
    def rest(self) -> int:
        """`r = K mod d`."""
        return self.capacity % self.divisor

    @property
    def limit(self) -> int:
        """`phi(K)`, the row's right-hand side; at least 1."""
        return (self.divisor - self.rest) * (self.capacity // self.divisor)

    def weight(self, w: Numbers) -> Numbers:
        """`phi(w)`, entry by entry."""
        d, r = self.divisor, self.rest
        weight: Numbers = (d - r) * (w // d) + np.maximum(w % d - r, 0)
        return weight

    def terms(
        self, instance: Instance, *, exact: bool = True
    ) -> tuple[Numbers, Numbers]:
        """`rounded_volume` of this row."""
        return rounded_volume(instance, self, exact=exact)

    def sums(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """`sum_{w=0..x} phi(w)` and `sum_{w=0..x} w phi(w)`, entry by entry.

        With `w = q d + a`: full periods `q < Q` and the begun one, `q = Q`, `a <= R`.
        """
        d, r = self.divisor, self.rest
        q, a = x // d, x % d
        above = np.maximum(a - r, 0)
        first = q * (q - 1) // 2  # 0 + 1 + ... + (Q - 1)
        second = first * (2 * q - 1) // 3  # and the squares
        ramp, slope = _triangle(d - 1 - r), _ramp_moment(d - 1 - r, r)
        plain = (d - r) * (d * first + q * (a + 1))
        plain += q * ramp + _triangle(above)
        moment = (d - r) * (d * d * second + _triangle(d - 1) * first)
        moment += (d - r) * q * (q * d * (a + 1) + _triangle(a))
        moment += d * ramp * first + slope * q
        moment += q * d * _triangle(above) + _ramp_moment(above, r)
        return plain, moment


def _triangle(m: Any) -> Any:
    """`1 + 2 + ... + m`."""
    return m * (m + 1) // 2


def _ramp_moment(m: Any, r: int) -> Any:
    """`sum_{b=1..m} (r + b) b`."""
    return m * (m + 1) * (2 * m + 1) // 6 + r * _triangle(m)


def rounded_volume(
    instance: Instance, row: RoundedRow, *, exact: bool = True
) -> tuple[Numbers, Numbers]:
    """Volume and moment of each request in a row.

    Parameters
    ----------
    instance : Instance
    row : RoundedRow
        Its capacity is the instance's budget in blocks.
    exact : bool
        Python integers if true; otherwise floats, approximate and many times faster.

    Returns
    -------
    volume : array, shape (n,)
        `sum_{j=1..o} phi(w_j)`, `w_j` the blocks held in step `j`.
    moment : array, shape (n,)
        `sum_{j=1..o} phi(w_j) (2 j - 1)`.
    """
    kind: Any = object if exact else np.float64
    s, o = instance.prefill.astype(kind), instance.decode.astype(kind)
    block = instance.engine.block_size
    low, low_moment = _token_sums(row, s, block)
    high, high_moment = _token_sums(row, s + o, block)
    volume = high - low
    return volume, 2 * (high_moment - low_moment) - (2 * s + 1) * volume


def _token_sums(row: RoundedRow, x: Numbers, block: int) -> tuple[Numbers, Numbers]:
    """`sum_{y=1..x} phi(ceil(y / B))` and `sum_{y=1..x} y phi(ceil(y / B))`.

    Block `b` holds the tokens `b B - B + 1, ..., b B`.
    """
    full, rest = x // block, x % block
    plain, moment = row.sums(full)
    begun = row.weight(full + 1)
    tokens = block * plain + rest * begun
    total = block * block * moment - _triangle(block - 1) * plain
    total += begun * (rest * full * block + _triangle(rest))
    return tokens, total
