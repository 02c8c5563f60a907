"""Lists for engines with several caps: by a request's share of all resources.

A step is limited to `M` tokens of KV, `K` requests and `B` processed tokens. With
weights `w` a request takes the area

    w_M v / M  +  w_K o / K  +  w_B (s + o - 1) / B

over its life, and smallest area first is Smith's rule for the relaxation with the
weighted sum as its only limit. With all weight on memory it is `svf`, with all weight
on the number of requests `mc-sf`. The method `area` takes the weights for which there
is a proven ratio (`proofs_checks/test_claim_area_ratio.py`). Which weights are best in
practice depends on the cap that binds: `best-list` tries several.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sortedf.methods.table import register_rule
from sortedf.volume import volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

GRID = 4
"""Weights are multiples of one over this."""


@register_rule(
    "area",
    about="smallest share of memory, requests and tokens first: svf for engines with "
    "caps on a step",
    guarantee="2 + 2 / (1 - max peak / M), and 1 / (1 - max prompt / B) more with a "
    "cap B on tokens; backlogs, backfill 0",
    cost="O(n log n)",
    for_step_caps=True,
)
def area(instance: Instance, options: Options) -> Ints:
    """Order by `2 v / (M - max peak) + o / K + (s + o - 1) / (B - max prompt)`.

    Terms of caps that the engine does not have are left out, and if a single request
    can reach `M` or `B`, all terms but those.
    """
    engine, shares = instance.engine, shares_of_caps(instance)
    largest = [instance.peak.max(initial=0) / instance.usable_kv]
    if engine.max_num_seqs is not None:
        largest.append(0.0)
    if engine.max_batched_tokens is not None:
        largest.append(instance.prefill.max(initial=0) / engine.max_batched_tokens)
    room = 1 - np.asarray(largest)
    weight = (room == 0).astype(float) if (room == 0).any() else 1 / room
    weight[0] *= 2
    return np.argsort(weight @ shares, kind="stable")


def area_orders(instance: Instance) -> Iterator[Ints]:
    """Yield an order for each point of the grid; none if only memory has a cap."""
    shares = shares_of_caps(instance)
    if len(shares) == 1:
        return
    for weight in product(range(GRID + 1), repeat=len(shares)):
        if sum(weight) == GRID and weight[0] < GRID:  # all weight on memory is svf
            yield np.argsort(np.asarray(weight) @ shares, kind="stable")


def shares_of_caps(instance: Instance) -> Floats:
    """Share of each cap that each request takes over its life; shape (caps, n).

    The caps are `M`, then `K` and `B` if the engine has them.
    """
    engine = instance.engine
    s, o = instance.prefill, instance.decode
    shares = [volume(instance) / instance.usable_kv]
    if engine.max_num_seqs is not None:
        shares.append(o / engine.max_num_seqs)
    if engine.max_batched_tokens is not None:
        shares.append((s + o - 1) / engine.max_batched_tokens)
    return np.stack(shares)
