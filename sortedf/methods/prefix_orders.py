"""List rules that keep prompts with common prefixes together, as engines have them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from sortedf.methods.table import register_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options
    from sortedf.shared_prefixes import SharedPrefixes

    Ints = NDArray[np.int64]

FAIR_EVERY = 10
"""`k` of k-LPM: one of `k` requests is the oldest."""


@register_rule(
    "depth-first",
    about="the tree of prefixes in depth-first order (arXiv 2411.16102, vllm#12080)",
    guarantee="none (unbounded)",
    cost="O(n log n)",
    only_shared=True,
)
def depth_first(instance: Instance, options: Options) -> Ints:
    """Order by the path from the root, subtrees in order of their first request."""
    shared = instance.prefixes
    if shared is None:
        return np.argsort(instance.arrival, kind="stable")
    n = instance.num_requests
    oldest = np.argsort(instance.arrival, kind="stable").tolist()
    rank = {i: r for r, i in enumerate(oldest)}
    first = np.full(len(shared), n, dtype=np.int64)  # rank of the first request below
    for i in oldest:
        for node in shared.path(i):
            first[node] = min(first[node], rank[i])

    def key(i: int) -> list[int]:
        # Its own rank at the end decides between requests of the same leaf.
        return [*(int(first[node]) for node in reversed(shared.path(i))), rank[i]]

    return np.array(sorted(range(n), key=key), dtype=np.int64)


@register_rule(
    "longest-prefix",
    about="longest prefix in the cache first, as SGLang (LPM)",
    guarantee="none (unbounded)",
    cost="O(n^2)",
    only_shared=True,
)
def longest_prefix(instance: Instance, options: Options) -> Ints:
    """Order by the longest cached prefix, one request after the other."""
    return _longest_prefix(instance, instance.num_requests + 1)


@register_rule(
    "k-lpm",
    about=f"the oldest, then {FAIR_EVERY - 1} by longest prefix (arXiv 2502.04677)",
    guarantee="none (unbounded)",
    cost="O(n^2)",
    only_shared=True,
)
def k_lpm(instance: Instance, options: Options) -> Ints:
    """Order by the longest cached prefix, but for every `FAIR_EVERY`-th request."""
    return _longest_prefix(instance, FAIR_EVERY)


def _longest_prefix(instance: Instance, every: int) -> Ints:
    """Take the longest cached prefix first, and the oldest once in `every` requests.

    Ties go to the oldest. The cache keeps the prefixes used last, up to the KV budget.
    """
    oldest = np.argsort(instance.arrival, kind="stable")
    shared = instance.prefixes
    if shared is None:
        return oldest
    cache = _Cache(shared, instance.engine.num_blocks)
    rank = np.empty(len(oldest), dtype=np.int64)
    rank[oldest] = np.arange(len(oldest))
    order: list[int] = []
    waiting = np.ones(len(oldest), dtype=np.bool_)
    next_oldest = 0
    while len(order) < len(oldest):
        while not waiting[oldest[next_oldest]]:
            next_oldest += 1
        i = int(oldest[next_oldest])
        if len(order) % every:
            best = np.where(waiting, cache.found, -1)
            ties = np.flatnonzero(best == best.max())
            i = int(ties[np.argmin(rank[ties])])
        waiting[i] = False
        order.append(i)
        cache.use(i)
    return np.array(order, dtype=np.int64)


class _Cache:
    """Nodes in the cache, the one used longest ago first.

    Attributes
    ----------
    found : int64 array, shape (n,)
        Blocks of each request that are in the cache.
    """

    def __init__(self, shared: SharedPrefixes, capacity: int) -> None:
        self._shared = shared
        self._members = shared.members()
        self._nodes: OrderedDict[int, None] = OrderedDict()
        self._free = capacity
        self.found = np.zeros(len(shared.leaf), dtype=np.int64)

    def use(self, i: int) -> None:
        """Take a request's nodes into the cache, and evict others if need be."""
        shared = self._shared
        for node in shared.path(i):  # a node after those below it, which go first
            if node not in self._nodes:
                self._free -= int(shared.blocks[node])
                below = self._members[node]
                self.found[below] = np.maximum(self.found[below], shared.depth[node])
            self._nodes[node] = None
            self._nodes.move_to_end(node)
        while self._free < 0:
            node, _ = self._nodes.popitem(last=False)
            blocks = int(shared.blocks[node])
            self._free += blocks
            self.found[self._members[node]] = shared.depth[node] - blocks
