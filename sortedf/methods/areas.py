"""Lists for engines with several caps: by a request's share of all resources.

A step is limited to `M` tokens of KV, `K` requests and `B` processed tokens. With
weights `w` that add up to 1 a request takes the area

    w_M v / M  +  w_K o / K  +  w_B (s + o - 1) / B

over its life, and smallest area first is Smith's rule for the relaxation with their sum
as its only limit. With all weight on memory it is `svf`, with all weight on the number
of requests `mc-sf`. The best weights depend on the cap that binds: several are tried.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sortedf.volume import volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

GRID = 4
"""Weights are multiples of one over this."""


def area_orders(instance: Instance) -> Iterator[Ints]:
    """Yield an order for each point of the grid; none if only memory has a cap."""
    engine = instance.engine
    s, o = instance.prefill, instance.decode
    shares = [volume(instance) / instance.usable_kv]
    if engine.max_num_seqs is not None:
        shares.append(o / engine.max_num_seqs)
    if engine.max_batched_tokens is not None:
        shares.append((s + o - 1) / engine.max_batched_tokens)
    if len(shares) == 1:
        return
    for weight in product(range(GRID + 1), repeat=len(shares)):
        if sum(weight) == GRID and weight[0] < GRID:  # all weight on memory is svf
            yield np.argsort(np.asarray(weight) @ np.stack(shares), kind="stable")
