"""Prefixes that requests share, as a forest of runs of whole KV blocks.

A block holds the KV of `B` tokens and depends on all tokens before it, so two requests
with the same first tokens have the same first blocks. A node is a run of blocks; a
request holds the full blocks on the path from a root to its leaf. Blocks held by
several running requests are in the cache once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Chain: TypeAlias = "Sequence[Hashable]"
"""One key per full block of a request's tokens; equal keys mean equal tokens up to the
end of that block."""

NO_NODE = -1


class PrefixForest:
    """Prefixes shared by running requests, and by waiting ones with them.

    An engine with prefix caching updates it by `start` and `stop`. Waiting requests are
    added when a policy considers them, by `look_up`.

    Parameters
    ----------
    chain_of : callable
        Returns the chain of a waiting request, by id.
    num_cached : callable
        `num_cached(i, most)` returns the number of blocks that are in the cache now
        among the first `most` of a waiting request.
    block_size : int
        Tokens per block.

    Attributes
    ----------
    leaf : int64 array, by request
        Node that ends with its last full block, `NO_NODE` if there is none or the
        request is not in the forest.
    parent, depth, held : int64 arrays, by node
        The node before it or `NO_NODE`; blocks from the root to its end; number of
        running requests that hold it.
    """

    def __init__(
        self,
        chain_of: Callable[[int], Chain],
        num_cached: Callable[[int, int], int],
        block_size: int,
    ) -> None:
        self._chain_of = chain_of
        self._num_cached = num_cached
        self._size = block_size
        self.leaf: Ints = np.full(64, NO_NODE, dtype=np.int64)
        self.parent: Ints = np.full(64, NO_NODE, dtype=np.int64)
        self.depth: Ints = np.zeros(64, dtype=np.int64)
        self.held: Ints = np.zeros(64, dtype=np.int64)
        self._map_fields()
        self._chain: dict[int, Chain] = {}  # of each node: a chain that contains it
        self._uses: dict[int, int] = {}  # requests whose leaf it is, plus its children
        self._by_first: dict[Hashable, int] = {}  # node by its first block
        self._vacant: list[int] = []
        self._known: dict[int, bool] = {}  # requests, and whether they run

    def _map_fields(self) -> None:
        """Create memoryviews, whose entries are accessed faster than an array's."""
        fields: Any = self
        self._leaf: memoryview[int] = memoryview(fields.leaf)
        self._parent: memoryview[int] = memoryview(fields.parent)
        self._depth: memoryview[int] = memoryview(fields.depth)
        self._held: memoryview[int] = memoryview(fields.held)

    def look_up(self, ids: Sequence[int], tokens: Sequence[int]) -> Ints:
        """Return how many tokens of each waiting request are in the cache now.

        Only whole blocks count, and the last token is always computed.

        Parameters
        ----------
        ids : sequence of int
        tokens : sequence of int
            Tokens of each so far: prompt and output tokens.
        """
        found = np.zeros(len(ids), dtype=np.int64)
        for k, (i, count) in enumerate(zip(ids, tokens, strict=True)):
            self._know(i, count)
            chain = self._chain_of(i)
            most = min((count - 1) // self._size, len(chain))
            if most > 0:
                found[k] = self._num_cached(i, most) * self._size
        return found

    def start(self, i: int, chain: Chain, found: int) -> None:
        """Start a request with its first `found` blocks in the cache.

        Blocks that it computes although another request holds them are second copies,
        which later requests never find, since the first copy is found before.
        """
        self.stop(i)
        cut = self._insert(chain, min(found, len(chain)))
        node = above = self._insert(chain, len(chain))
        while above != cut and not self._held[above]:
            above = self._parent[above]
        if above != cut:
            node, cut = cut, node
        self._release(cut)
        self._set_leaf(i, node)
        self._known[i] = True
        while node != NO_NODE:
            self._held[node] += 1
            node = self._parent[node]

    def stop(self, i: int) -> None:
        """Remove a running or waiting request; an unknown one is ignored."""
        runs = self._known.pop(i, None)
        if runs is None:
            return
        node = leaf = self._leaf[i]
        self._leaf[i] = NO_NODE
        if runs:
            while node != NO_NODE:
                self._held[node] -= 1
                node = self._parent[node]
        self._release(leaf)

    def needs(
        self, ids: Sequence[int], tokens: Sequence[int], blocks: Sequence[int]
    ) -> list[int]:
        """Free blocks that each request needs if all start in this order.

        Parameters
        ----------
        ids, tokens
            As for `look_up`.
        blocks : sequence of int
            Blocks that each needs in total.
        """
        for i, count in zip(ids, tokens, strict=True):
            self._know(i, count)
        taken: set[int] = set()
        needs = []
        for i, count, own in zip(ids, tokens, blocks, strict=True):
            node = self._leaf[i]
            while node != NO_NODE and not (self._held[node] or node in taken):
                taken.add(node)
                node = self._parent[node]
            there = 0 if node == NO_NODE else self._depth[node]
            needs.append(own - min(there, (count - 1) // self._size))
        return needs

    def _know(self, i: int, tokens: int) -> None:
        """Add a waiting request; blocks that it never finds are a separate node."""
        if i in self._known:
            return
        chain = self._chain_of(i)
        cut = self._insert(chain, min((tokens - 1) // self._size, len(chain)))
        leaf = self._insert(chain, len(chain))
        self._release(cut)
        self._set_leaf(i, leaf)
        self._known[i] = False

    def _set_leaf(self, i: int, node: int) -> None:
        if i >= len(self.leaf):
            more = np.full(max(i + 1, len(self.leaf)), NO_NODE, dtype=np.int64)
            self.leaf = np.concatenate([self.leaf, more])
            self._map_fields()
        self._leaf[i] = node

    def _begin(self, node: int) -> int:
        """Blocks before a node."""
        above = self._parent[node]
        return 0 if above == NO_NODE else self._depth[above]

    def _insert(self, chain: Chain, blocks: int) -> int:
        """Return the node that ends after `blocks` blocks, and count one more use."""
        node, done = NO_NODE, 0
        while done < blocks:
            following = self._by_first.get(chain[done])
            if following is None:
                node = self._make(node, chain, blocks)
                break
            same = _common(chain, self._chain[following], done, min(
                blocks, self._depth[following]
            ))  # fmt: skip
            if same < self._depth[following]:
                following = self._split(following, same)
            node, done = following, same
        if node != NO_NODE:
            self._uses[node] += 1
        return node

    def _make(self, above: int, chain: Chain, depth: int) -> int:
        """Return a new node without uses."""
        if not self._vacant:
            count = len(self.parent)
            self._vacant = list(range(2 * count - 1, count - 1, -1))
            if not self._chain:  # the first ones
                self._vacant += range(count - 1, -1, -1)
            self.parent = np.concatenate([self.parent, np.full_like(self.parent, -1)])
            self.depth = np.concatenate([self.depth, np.zeros_like(self.depth)])
            self.held = np.concatenate([self.held, np.zeros_like(self.held)])
            self._map_fields()
        node = self._vacant.pop()
        self._parent[node], self._depth[node], self._held[node] = above, depth, 0
        self._chain[node] = chain
        self._uses[node] = 0
        self._by_first[chain[self._begin(node)]] = node
        if above != NO_NODE:
            self._uses[above] += 1
        return node

    def _split(self, node: int, depth: int) -> int:
        """Split a node in two; return the upper part, which is a new node."""
        chain, above = self._chain[node], self._parent[node]
        upper = self._make(above, chain, depth)
        if above != NO_NODE:
            self._uses[above] -= 1  # the lower part is a child of the upper one now
        self._parent[node] = upper
        self._by_first[chain[depth]] = node
        self._uses[upper] = 1
        self._held[upper] = self._held[node]
        return upper

    def _release(self, node: int) -> None:
        """Count one use less of a node; remove nodes without uses."""
        while node != NO_NODE:
            self._uses[node] -= 1
            if self._uses[node]:
                return
            above = self._parent[node]
            del self._by_first[self._chain[node][self._begin(node)]]
            del self._chain[node], self._uses[node]
            self._vacant.append(node)
            node = above


def _common(a: Chain, b: Chain, same: int, most: int) -> int:
    """Count equal first blocks of two chains, from `same + 1` to `most`.

    Keys depend on all tokens before them, so bisection finds the number.
    """
    if a is b or a[most - 1] == b[most - 1]:
        return most
    low, high = same + 1, most - 1
    while low < high:
        middle = (low + high + 1) // 2
        if a[middle - 1] == b[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
