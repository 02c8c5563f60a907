"""Orders that keep subtrees of prefixes together when it pays.

On one machine of speed `M` a set of requests that all run while a prefix is held adds a
set-up, the prefix' own memory-time volume, to the volumes of the requests. Smith's rule
for such families takes the set with the least volume per request first, set-up included
(for precedence in trees it is W. A. Horn's rule, SIAM J. Appl. Math. 23, 1972): at each
node the requests and chunks below are sorted by volume per request, and the shortest
begins of the list that are best with the set-up become its chunks. What is left forms
further chunks, each with a set-up of its own, since by then the prefix may be evicted.

How long a prefix is held depends on what runs beside, so several set-ups are tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sortedf.methods.table import register_rule
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options
    from sortedf.shared_prefixes import SharedPrefixes

    Ints = NDArray[np.int64]

HELD = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Time that a chunk's prefix is held, in mean answers of the requests below it."""


class SubtreePart(NamedTuple):
    """Requests that are started one after the other, and their volume with set-ups."""

    cost: float
    ids: list[int]

    @property
    def ratio(self) -> float:
        """Volume per request."""
        return self.cost / len(self.ids)


@register_rule(
    "subtree-volume",
    about="smallest volume per request first, of requests with a prefix and of it",
    guarantee="none",
    cost="O(n log n) for each chunk of a tree",
    only_shared=True,
)
def subtree_volume(instance: Instance, options: Options) -> Ints:
    """Order by volume per request, each prefix held for two mean answers."""
    return subtree_order(instance, 2.0)


def subtree_order(instance: Instance, held: float) -> Ints:
    """Order of chunks by volume per request.

    Parameters
    ----------
    held : float
        Time that a chunk's prefix is held, in mean answers of the requests below it.
    """
    shared = instance.prefixes
    if shared is None:
        return np.argsort(volume(instance), kind="stable")
    block = instance.engine.block_size
    own = instance.prefill - shared.request_blocks * block
    o = instance.decode
    volumes = (own * o + o * (o + 1) // 2).tolist()
    setup = (held * shared.blocks * block * _mean_below(shared, o)).tolist()
    # Parents have lower numbers than their children.
    chunks: list[list[SubtreePart]] = [[] for _ in range(len(shared) + 1)]
    for i, leaf in enumerate(shared.leaf.tolist()):
        chunks[leaf].append(SubtreePart(float(volumes[i]), [i]))
    for node in range(len(shared) - 1, -1, -1):
        chunks[int(shared.parent[node])] += _with_setup(chunks[node], setup[node])
        chunks[node] = []
    ordered = sorted(chunks[-1], key=lambda chunk: chunk.ratio)
    return np.array([i for chunk in ordered for i in chunk.ids], dtype=np.int64)


def _with_setup(parts: list[SubtreePart], setup: float) -> list[SubtreePart]:
    """Join parts, cheapest first, as long as that lowers the volume per request."""
    parts = sorted(parts, key=lambda chunk: chunk.ratio)
    joined: list[SubtreePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is None or part.ratio > last.ratio:
            joined.append(SubtreePart(setup + part.cost, list(part.ids)))
        else:
            last.ids.extend(part.ids)
            joined[-1] = last._replace(cost=last.cost + part.cost)
    return joined


def _mean_below(shared: SharedPrefixes, decode: Ints) -> NDArray[np.float64]:
    """Mean answer of the requests below each node."""
    total = np.bincount(
        shared.leaf[shared.leaf >= 0],
        weights=decode[shared.leaf >= 0],
        minlength=len(shared),
    )
    for node in range(len(shared) - 1, -1, -1):
        if shared.parent[node] >= 0:
            total[shared.parent[node]] += total[node]
    return np.asarray(total / shared.num_below)
