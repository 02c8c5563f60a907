"""Memory-time volume of requests and where its middle lies, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sortedf.instance import Instance

T = TypeVar("T", int, NDArray[np.int64])


def volume(instance: Instance) -> NDArray[np.int64]:
    """Memory-time volume `v` of each request, in token steps; shape (n,).

    `v = sum_{j=1..o} (s + j) = s o + o (o + 1) / 2`, each term rounded up to whole
    blocks. Lengths are at most 2**31 and peaks at most the budget, so it fits 64 bits.
    """
    s, o = instance.prefill, instance.decode
    block = instance.engine.block_size
    if block == 1:
        return s * o + o * (o + 1) // 2
    return _blocks_up_to(s + o, block) - _blocks_up_to(s, block)


def volume_moment(instance: Instance) -> list[int]:
    """`sum_{j=1..o} (s + j)(2 j - 1)` of each request, as Python integers.

    With `c_j` the tokens held in its j-th step, spread evenly over that step, the
    volume-weighted middle of a request lies `moment / (2 v)` after its start. Terms
    are rounded up to whole blocks; the values can leave 64 bits.
    """
    block = instance.engine.block_size
    pairs = zip(instance.prefill.tolist(), instance.decode.tolist(), strict=True)
    if block == 1:
        return [
            s * o * o + o * (o + 1) * (2 * o + 1) // 3 - o * (o + 1) // 2
            for s, o in pairs
        ]
    # With y = s + j and c(y) the rounded tokens: sum of c(y) (2 y - 2 s - 1).
    return [
        2 * (_weighted_up_to(s + o, block) - _weighted_up_to(s, block))
        - (2 * s + 1) * (_blocks_up_to(s + o, block) - _blocks_up_to(s, block))
        for s, o in pairs
    ]


def _blocks_up_to(x: T, block: int) -> T:
    """`sum_{y=1..x} ceil(y / B) B`."""
    full, rest = x // block, x % block
    return block * (block * full * (full + 1) // 2 + rest * (full + 1))


def _weighted_up_to(x: int, block: int) -> int:
    """`sum_{y=1..x} y ceil(y / B) B`."""
    full, rest = divmod(x, block)
    # Block b = 1..full has the sum of y equal to B (b B) - B (B - 1) / 2.
    squares = full * (full + 1) * (2 * full + 1) // 6
    total = block * block * (2 * block * squares - (block - 1) * full * (full + 1) // 2)
    last = rest * full * block + rest * (rest + 1) // 2
    return total // 2 + (full + 1) * block * last
