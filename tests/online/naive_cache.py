"""A slow, obvious twin of the step engine with prefix caching, by vLLM's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.online.naive import NaiveEngine

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(eq=False)
class Block:
    """A KV block: who holds it, and what is in it if it can be found."""

    users: int = 0
    key: Hashable = None


@dataclass(kw_only=True)
class NaiveCachingEngine(NaiveEngine):
    """Free blocks are kept in the order in which they are taken.

    Attributes
    ----------
    keys : dict of int to list
        Of each request what is in each block that it fills.
    cached : list of Block
        Blocks that can be found, in the order in which they were filled.
    """

    keys: dict[int, list[Hashable]]
    free: list[Block] = field(default_factory=list)
    cached: list[Block] = field(default_factory=list)
    held: dict[int, list[Block]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = [Block() for _ in range(self.num_blocks)]

    @property
    def num_free(self) -> int:
        return len(self.free)

    def find(self, i: int) -> list[Block]:
        """The first blocks of a request that are cached; not that of its last token."""
        request, blocks = self.requests[i], []
        most = (request.prefill + request.output_tokens - 1) // self.rules.block_size
        for key in self.keys[i][:most]:
            same = [block for block in self.cached if block.key == key]
            if not same:
                break
            blocks.append(same[0])
        return blocks

    def look_up(self, i: int) -> tuple[int, int]:
        blocks = self.find(i)
        in_use = sum(block.users > 0 for block in blocks)
        return len(blocks) * self.rules.block_size, in_use

    def admit(self, i: int) -> None:
        self.held[i] = self.find(i)
        for block in self.held[i]:
            if block.users == 0:
                self.free.remove(block)
            block.users += 1

    def allocate(self, i: int, tokens: int, computed: int, slots: int) -> None:
        """Take free blocks, and let the full ones be found."""
        held = self.held[i]
        while len(held) < self.blocks_for(slots):
            block = self.free.pop(0)
            if block in self.cached:
                self.cached.remove(block)
            block.users, block.key = 1, None
            held.append(block)
        for j in range(computed // self.rules.block_size,
                       tokens // self.rules.block_size):  # fmt: skip
            held[j].key = self.keys[i][j]
            self.cached.append(held[j])
        self.requests[i].blocks = len(held)

    def release(self, i: int) -> None:
        """Free the blocks of a request that no other one holds."""
        lost, kept = [], []
        for block in reversed(self.held.pop(i)):
            block.users -= 1
            if block.users == 0:
                (lost if block.key is None else kept).append(block)
        self.free = lost + self.free + kept
        self.requests[i].blocks = 0
