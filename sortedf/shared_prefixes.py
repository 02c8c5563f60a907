"""Shared prefixes of an instance's prompts: a forest of runs of whole KV blocks.

The memory convention of `sortedf.instance` with shared prefixes: a node is a run of
blocks, and a request holds the nodes on the path from a root to its leaf, and its own
blocks behind them. In every step the blocks of a node are held once if at least one
request below it runs, and the KV of a step is the sum over these nodes, plus each
running request's own blocks: `s + t - p` rounded up to blocks, less those of its path.

Blocks that no running request holds may stay in the cache until the room is needed, so
they count as free. In unit steps a prompt takes one step whether it is cached or not:
sharing saves memory only. As in vLLM a prompt's last token is always computed, so the
block that it is in is the request's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_TOKENS, frozen_ints

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.traces.prefix_ids import PrefixIds

    Ints = NDArray[np.int64]

NO_NODE = -1


@dataclass(frozen=True, eq=False)
class SharedPrefixes:
    """A forest of nodes, and each request's leaf. Checked once, then read-only.

    Parameters
    ----------
    parent : array_like of int, shape (k,)
        The node before each node, which has a lower number; `NO_NODE` for a root.
    blocks : array_like of int, shape (k,)
        Blocks of each node, at least 1.
    leaf : array_like of int, shape (n,)
        Last node of each request, `NO_NODE` if it shares nothing.

    Raises
    ------
    ValueError, TypeError
        If an entry is out of range; the message names it.

    Examples
    --------
    >>> shared = SharedPrefixes(parent=[-1, 0], blocks=[4, 2], leaf=[0, 1, 1, -1])
    >>> shared.depth.tolist(), shared.request_blocks.tolist()
    ([4, 6], [4, 6, 6, 0])
    """

    parent: Ints
    blocks: Ints
    leaf: Ints

    if TYPE_CHECKING:  # accepted types; the fields above have the converted ones

        def __init__(
            self, parent: ArrayLike, blocks: ArrayLike, leaf: ArrayLike
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        most = np.size(self.blocks)
        for name, low, high in (
            ("parent", NO_NODE, most - 1),
            ("blocks", 1, MAX_TOKENS),
            ("leaf", NO_NODE, most - 1),
        ):
            values = frozen_ints(name, getattr(self, name), minimum=low, maximum=high)
            put(self, name, values)
        if len(self.parent) != len(self.blocks):
            raise ValueError(
                f"parent has {len(self.parent)} entries but blocks has "
                f"{len(self.blocks)}; they must be equally long."
            )
        late = self.parent >= np.arange(len(self.parent))
        if late.any():
            k = int(np.argmax(late))
            raise ValueError(f"parent[{k}] = {self.parent[k]} but must be below {k}.")

    def __reduce__(self) -> tuple[type[SharedPrefixes], tuple[Any, ...]]:
        # Default pickling would restore writeable, unchecked arrays.
        return SharedPrefixes, (self.parent, self.blocks, self.leaf)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.parent)

    @cached_property
    def depth(self) -> Ints:
        """Blocks from the root to the end of each node, shape (k,)."""
        depth = self.blocks.copy()
        for k, above in enumerate(self.parent.tolist()):
            if above != NO_NODE:
                depth[k] += depth[above]
        return depth

    @cached_property
    def request_blocks(self) -> Ints:
        """Blocks of each request's path, shape (n,)."""
        return np.append(self.depth, 0)[self.leaf]  # -1 is the last entry

    @cached_property
    def root(self) -> Ints:
        """Root above each node, shape (k,)."""
        root = np.arange(len(self))
        for k, above in enumerate(self.parent.tolist()):
            if above != NO_NODE:
                root[k] = root[above]
        return root

    @cached_property
    def num_below(self) -> Ints:
        """Requests at or below each node, shape (k,)."""
        count = np.bincount(self.leaf[self.leaf >= 0], minlength=len(self))
        for k in range(len(self) - 1, -1, -1):
            if self.parent[k] != NO_NODE:
                count[self.parent[k]] += count[k]
        return count

    def path(self, request: int) -> list[int]:
        """Nodes of a request, from its leaf to the root."""
        nodes, node = [], int(self.leaf[request])
        while node != NO_NODE:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes

    def members(self) -> list[Ints]:
        """Ids of the requests at or below each node, ascending."""
        below: list[list[int]] = [[] for _ in range(len(self))]
        for i in range(len(self.leaf)):
            for node in self.path(i):
                below[node].append(i)
        return [np.array(ids, dtype=np.int64) for ids in below]

    def subset(self, ids: Ints) -> SharedPrefixes | None:
        """Shared prefixes of some requests, renumbered; None if they share nothing."""
        return _compressed(self.parent, self.blocks, self.leaf[ids])

    @classmethod
    def of_prefix_ids(
        cls, ids: PrefixIds, prefill: ArrayLike, block_size: int
    ) -> SharedPrefixes | None:
        """Find what prompts share by the ids of a trace; None if it is nothing.

        Parameters
        ----------
        ids : PrefixIds
        prefill : array_like of int, shape (n,)
            Prompt lengths, in tokens.
        block_size : int
            Tokens per KV block of the engine.
        """
        ends = [
            _block_ends(len(ids[i]), ids.tokens_per_id, s, block_size)
            for i, s in enumerate(np.asarray(prefill).tolist())
        ]
        # A block of the trace may be cut at several lengths, by prompts that end in it.
        number: dict[tuple[int, int], int] = {}
        cuts: dict[int, set[int]] = {}
        visits = []
        for i, own in enumerate(ends):
            before, visited = NO_NODE, []
            for block, end in zip(ids[i].tolist(), own, strict=False):
                before = number.setdefault((before, block), len(number))
                cuts.setdefault(before, set()).add(end)
                visited.append(before)
            visits.append(visited)
        parent: list[int] = []
        blocks: list[int] = []
        last: dict[tuple[int, int], int] = {}  # node that ends a block's part
        for (before, _), here in number.items():
            node, done = NO_NODE, 0
            if before != NO_NODE:
                done = max(cuts[before])
                node = last[before, done]
            for end in sorted(cuts[here]):
                if end > done:
                    parent.append(node)
                    blocks.append(end - done)
                    node, done = len(parent) - 1, end
                last[here, end] = node
        leaf = [
            last[visited[-1], own[len(visited) - 1]] if visited else NO_NODE
            for visited, own in zip(visits, ends, strict=True)
        ]
        return _compressed(
            np.array(parent, dtype=np.int64),
            np.array(blocks, dtype=np.int64),
            np.array(leaf, dtype=np.int64),
        )


def _block_ends(count: int, per_id: int, prefill: int, block_size: int) -> list[int]:
    """Return the engine blocks from the prompt's begin to the end of each of its ids.

    Only whole blocks count, and not that of the prompt's last token.
    """
    most = (prefill - 1) // block_size
    used = min(count, -(-prefill // per_id))
    return [min((k + 1) * per_id // block_size, most) for k in range(used)]


def _compressed(parent: Ints, blocks: Ints, leaf: Ints) -> SharedPrefixes | None:
    """Drop nodes of fewer than two requests, and join nodes of the same requests."""
    whole = SharedPrefixes(parent, blocks, leaf)
    count = whole.num_below
    only = np.zeros(len(whole), dtype=np.bool_)  # joined to the node above
    above = whole.parent
    inner = above != NO_NODE
    only[inner] = count[inner] == count[above[inner]]
    new = np.full(len(whole) + 1, NO_NODE, dtype=np.int64)  # the last is of NO_NODE
    kept_parent: list[int] = []
    kept_blocks: list[int] = []
    for k in range(len(whole)):
        mapped = int(new[above[k]])
        if count[k] < 2:
            new[k] = mapped
        elif only[k]:
            new[k] = mapped
            kept_blocks[mapped] += int(blocks[k])
        else:
            new[k] = len(kept_parent)
            kept_parent.append(mapped)
            kept_blocks.append(int(blocks[k]))
    if not kept_parent:
        return None
    return SharedPrefixes(kept_parent, kept_blocks, new[leaf])
