"""What an engine has room for in the coming step, while victims are being chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from online.state import State

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What requests take when the coming step is over, one entry per request.

    As if the whole prompt were processed in that step, even where it takes several:
    nothing is to be started into room that a prompt in progress is about to take.

    Attributes
    ----------
    blocks : int64 array
        Blocks that they hold then.
    growth : int64 array
        How many of these they do not hold yet.
    tokens : int64 array
        Tokens that are processed for it.
    """

    blocks: Ints
    growth: Ints
    tokens: Ints

    @classmethod
    def of(cls, state: State, ids: Ints) -> Shares:
        """Shares of some requests."""
        requests, rules = state.requests, state.rules
        total = requests.prefill[ids] + requests.made[ids]
        computed = requests.computed[ids]
        size, extra = rules.block_size, rules.extra_slots
        blocks = -(-(total + extra) // size)
        held = -(-(computed + extra * (computed > 0)) // size)
        return cls(blocks, blocks - held, total - computed)


@dataclass(slots=True)
class Room:
    """Blocks, places and tokens that are left once all that runs has had its share.

    Attributes
    ----------
    blocks, tokens : int
        Below 0 if there are too few even for what runs.
    num_running : int
    seqs_cap, watermark : int
        Most requests that run, and blocks that admission leaves free.
    per_running : float
        Blocks by which a running request is expected to grow soon.
    """

    blocks: int
    tokens: int
    num_running: int
    seqs_cap: int
    watermark: int
    per_running: float

    @classmethod
    def of(cls, state: State, shares: Shares, headroom: int) -> Room:
        """Room before a step, given the shares of what runs; `fits` for `headroom`."""
        rules = state.rules
        return cls(
            state.free_blocks - int(shares.growth.sum()),
            rules.tokens_cap - int(shares.tokens.sum()),
            len(state.running),
            rules.seqs_cap,
            rules.watermark_blocks,
            headroom / rules.block_size,
        )

    def fits(self, blocks: int) -> bool:
        """Whether one more request that needs `blocks` fits.

        Unless it would be alone, the watermark stays free, and what all that run will
        grow by in the next `headroom` steps: else it would soon have to go again.
        """
        if self.num_running == 0:
            return blocks <= self.blocks
        later = int(self.per_running * (self.num_running + 1))
        return (
            self.num_running < self.seqs_cap
            and blocks + self.watermark + later <= self.blocks
        )

    def start(self, blocks: int, tokens: int) -> None:
        """Take away what a request takes that starts."""
        self.blocks -= blocks
        self.tokens -= min(tokens, self.tokens)
        self.num_running += 1

    def evict(self, blocks: int, tokens: int) -> None:
        """Give back the share of a request that ran."""
        self.blocks += blocks
        self.tokens += tokens
        self.num_running -= 1
