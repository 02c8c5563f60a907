"""The engine's rules as parameters: the papers' model and vLLM are two settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from online import step_kernels as k
from sortedf.arrays import MAX_TOKENS, checked_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel

Eviction = Literal["recompute", "restart"]


@dataclass(frozen=True, slots=True)
class StepRules:
    """What an engine does in one step, and how it holds KV.

    Attributes
    ----------
    kv_budget : int
        `M`, in tokens; `floor(M / B)` blocks.
    block_size : int
        Tokens per block, `B`.
    max_num_seqs, max_batched_tokens : int, optional
        Most requests that run, and most tokens that are processed, in one step.
    chunked_prefill : bool
        Whether a prompt may be cut to what is left of a step's tokens. Without, a
        prompt that does not fit waits for the next step.
    reserve_prompt : bool
        Whether a request is admitted only when its whole prompt has room, and not just
        the first chunk (vLLM's `scheduler_reserve_full_isl`).
    watermark : float
        Part of the blocks that admission leaves free while anything runs.
    counts_new_token : bool
        Whether the token made in a step needs its room in that step (the papers'
        model) or only in the next one, in which it is computed (vLLM).
    eviction : {"recompute", "restart"}
        What an evicted request keeps: its tokens, whose KV is computed again, or
        nothing.
    prefix_caching : bool
        Whether requests share the KV of what their prompts begin with, and find what
        was computed before and is still in the cache.
    """

    kv_budget: int
    block_size: int = 1
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    chunked_prefill: bool = True
    reserve_prompt: bool = True
    watermark: float = 0.0
    counts_new_token: bool = False
    eviction: Eviction = "recompute"
    prefix_caching: bool = False

    def __post_init__(self) -> None:
        for name in ("kv_budget", "block_size", "max_num_seqs", "max_batched_tokens"):
            value = getattr(self, name)
            if value is not None or name in ("kv_budget", "block_size"):
                value = checked_int(name, value, minimum=1, maximum=MAX_TOKENS)
                object.__setattr__(self, name, value)
        if not (math.isfinite(self.watermark) and 0 <= self.watermark < 1):
            raise ValueError(
                f"watermark = {self.watermark} but must be at least 0 and below 1."
            )
        if self.eviction not in ("recompute", "restart"):
            raise ValueError(
                f"eviction = {self.eviction!r} but must be 'recompute' or 'restart'."
            )

    @classmethod
    def of_model(cls, kv_budget: int, model: EngineModel) -> StepRules:
        """Return the papers' rules: whole prompts, and room for the token just made."""
        return cls(
            kv_budget,
            model.block_size,
            model.max_num_seqs,
            model.max_batched_tokens,
            chunked_prefill=False,
            counts_new_token=True,
            eviction="restart",
        )

    @property
    def num_blocks(self) -> int:
        """The budget in whole blocks."""
        return self.kv_budget // self.block_size

    @property
    def extra_slots(self) -> int:
        """Slots that a request needs beyond the tokens computed: 0 or 1."""
        return int(self.counts_new_token)

    @property
    def seqs_cap(self) -> int:
        """`max_num_seqs`, or a number that never binds."""
        return MAX_TOKENS if self.max_num_seqs is None else self.max_num_seqs

    @property
    def tokens_cap(self) -> int:
        """`max_batched_tokens`, or a number that never binds."""
        return 2**62 if self.max_batched_tokens is None else self.max_batched_tokens

    @property
    def watermark_blocks(self) -> int:
        """Blocks that admission leaves free while anything runs."""
        # vLLM counts the null block, which it keeps back, when it takes its part.
        return int(self.watermark * (self.num_blocks + 1))

    def blocks(self, tokens: int) -> int:
        """Blocks that `tokens` tokens of KV occupy."""
        return -(-tokens // self.block_size)

    def refusal(self, prefill: int, decode: int) -> str | None:
        """Why a request can never run under these rules, or None if it can."""
        need = self.blocks(prefill + decode - 1 + self.extra_slots)
        if need > self.num_blocks:
            return (
                f"needs {need} KV blocks of {self.block_size} (prompt {prefill}, "
                f"answer {decode}) but the cache has {self.num_blocks}"
            )
        # A request preempted before its last token comes back with all the others.
        again = decode - 1 if self.eviction == "recompute" else 0
        longest = prefill + again
        if not self.chunked_prefill and longest > self.tokens_cap:
            return (
                f"has up to {longest} tokens to prefill at once but a step processes "
                f"{self.max_batched_tokens}"
            )
        return None

    def as_array(self) -> NDArray[np.int64]:
        """Return the rules as the step kernel reads them."""
        rules = np.zeros(k.NUM_RULES, dtype=np.int64)
        rules[k.BLOCK_SIZE] = self.block_size
        rules[k.MAX_SEQS] = self.seqs_cap
        rules[k.MAX_TOKENS_STEP] = self.tokens_cap
        rules[k.CHUNKED] = self.chunked_prefill
        rules[k.RESERVE] = self.reserve_prompt
        rules[k.WATERMARK] = self.watermark_blocks
        rules[k.EXTRA] = self.extra_slots
        rules[k.RESTART] = self.eviction == "restart"
        return rules
