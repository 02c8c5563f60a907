"""The engine as parameters, read by planner, checker, bounds, simulator and executor.

The defaults are the papers' model: KV by the token, no caps, whole prompts, and a token
holds KV from the step that makes it. `EngineModel.vllm` has the rules of vLLM's
scheduler, and `sortedf.engine_presets` vLLM's defaults.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from sortedf.arrays import MAX_TOKENS, checked_int

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Eviction = Literal["recompute", "restart"]


@dataclass(frozen=True, slots=True)
class EngineModel:
    """How an engine holds KV and what it does in one step.

    Attributes
    ----------
    kv_budget : int
        Size of the KV cache `M`, in tokens; `floor(M / B)` blocks of it are used.
    block_size : int
        Tokens per KV block, `B`. A request that holds `k` tokens occupies
        `ceil(k / B)` blocks.
    max_num_seqs : int, optional
        Most requests that run in one step.
    max_batched_tokens : int, optional
        Most tokens that one step processes: of prompts, and one token of each other
        running request (vLLM's `max_num_batched_tokens`).
    chunked_prefill : bool
        Whether a prompt may be cut to the remaining tokens of a step. If not, a prompt
        that does not fit waits for the next step, and one above `max_batched_tokens`
        can never run.
    long_prefill_token_threshold : int
        Most tokens of one prompt in a step, unless its request is the only one; 0 for
        no limit.
    reserve_prompt : bool
        Whether a request is admitted only if its whole prompt fits, and not just the
        first chunk (vLLM's `scheduler_reserve_full_isl`).
    watermark : float
        Share of the blocks that admission leaves free while any request runs.
    counts_new_token : bool
        Whether the token made in a step needs a slot in that step (the papers' model)
        or only in the next one, in which its KV is computed (vLLM).
    eviction : {"recompute", "restart"}
        Whether an evicted request keeps its tokens, whose KV is computed again, or
        starts again from its prompt.
    prefix_caching : bool
        Whether requests share the KV of common prefixes of their prompts.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or a combination is one that vLLM refuses.
    """

    kv_budget: int
    block_size: int = 1
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    chunked_prefill: bool = False
    long_prefill_token_threshold: int = 0
    reserve_prompt: bool = True
    watermark: float = 0.0
    counts_new_token: bool = True
    eviction: Eviction = "restart"
    prefix_caching: bool = False

    def __post_init__(self) -> None:
        for name in ("kv_budget", "block_size", "max_num_seqs", "max_batched_tokens"):
            self._check_int(name, minimum=1)
        self._check_int("long_prefill_token_threshold", minimum=0)
        if not (math.isfinite(self.watermark) and 0 <= self.watermark < 1):
            raise ValueError(
                f"watermark = {self.watermark} but must be at least 0 and below 1."
            )
        if self.eviction not in ("recompute", "restart"):
            raise ValueError(
                f"eviction = {self.eviction!r} but must be 'recompute' or 'restart'."
            )
        # vLLM 0.32.0, config/scheduler.py:328
        if self.max_num_seqs is not None and self.tokens_cap < self.max_num_seqs:
            raise ValueError(
                f"max_batched_tokens = {self.max_batched_tokens} but must be at least "
                f"max_num_seqs = {self.max_num_seqs}."
            )

    def _check_int(self, name: str, *, minimum: int) -> None:
        value = getattr(self, name)
        if value is not None or name in ("kv_budget", "block_size"):
            value = checked_int(name, value, minimum=minimum, maximum=MAX_TOKENS)
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        changed = [
            f"{field.name}={value!r}"
            for field in fields(self)
            if field.name != "kv_budget"
            and (value := getattr(self, field.name)) != field.default
        ]
        return f"EngineModel({', '.join([str(self.kv_budget), *changed])})"

    @classmethod
    def vllm(
        cls,
        kv_budget: int,
        block_size: int = 1,
        max_num_seqs: int | None = None,
        max_batched_tokens: int | None = None,
        **other: Any,
    ) -> EngineModel:
        """Return an engine with the rules of vLLM's scheduler, without its caps."""
        rules: dict[str, Any] = {**VLLM_RULES, **other}
        return cls(kv_budget, block_size, max_num_seqs, max_batched_tokens, **rules)

    @property
    def num_blocks(self) -> int:
        """The budget in whole blocks."""
        return self.kv_budget // self.block_size

    @property
    def usable_kv(self) -> int:
        """The budget in whole blocks, in tokens."""
        return self.num_blocks * self.block_size

    @property
    def extra_slots(self) -> int:
        """Slots that a request needs beyond the tokens computed: 0 or 1."""
        return int(self.counts_new_token)

    @property
    def caps_steps(self) -> bool:
        """Whether a step is limited in more than KV: in requests or in tokens."""
        return (self.max_num_seqs, self.max_batched_tokens) != (None, None)

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
        """Blocks that admission leaves free while any request runs."""
        # vLLM computes the share with the null block, which is never allocated.
        return int(self.watermark * (self.num_blocks + 1))

    def blocks(self, tokens: int) -> int:
        """Blocks that `tokens` tokens of KV occupy."""
        return -(-tokens // self.block_size)

    def round_up(self, tokens: int) -> int:
        """Tokens of KV that are occupied by `tokens` tokens: whole blocks."""
        return self.blocks(tokens) * self.block_size

    def refusal(self, prefill: int, decode: int) -> str | None:
        """Why a request can never run, or None if it can."""
        need = self.blocks(prefill + decode - 1 + self.extra_slots)
        if need > self.num_blocks:
            return (
                f"needs {need} KV blocks of {self.block_size} (prompt {prefill}, "
                f"answer {decode}) but the cache has {self.num_blocks}"
            )
        # A request preempted before its last token prefills all its tokens again.
        again = decode - 1 if self.eviction == "recompute" else 0
        longest = prefill + again
        if not self.chunked_prefill and longest > self.tokens_cap:
            return (
                f"has up to {longest} tokens to prefill at once but a step processes "
                f"{self.max_batched_tokens}"
            )
        return None

    def num_refused(self, prefill: NDArray[np.int64], decode: NDArray[np.int64]) -> int:
        """Return how many requests can never run."""
        pairs = zip(prefill.tolist(), decode.tolist(), strict=True)
        return sum(self.refusal(s, o) is not None for s, o in pairs)

    def not_planned(self) -> list[str]:
        """Rules that plans, bounds and the checker cannot follow yet."""
        found = []
        if self.chunked_prefill and self.max_batched_tokens is not None:
            found.append("prompts cut into chunks (chunked_prefill)")
        if not self.counts_new_token:
            found.append("KV for a token only after it is made (counts_new_token)")
        if self.long_prefill_token_threshold:
            found.append("a limit on prompts (long_prefill_token_threshold)")
        if self.watermark:
            found.append("blocks kept free (watermark)")
        if self.prefix_caching and self.max_batched_tokens is not None:
            found.append("shared prompts beside a cap on tokens (prefix_caching)")
        return found


VLLM_RULES = {
    "chunked_prefill": True,
    "counts_new_token": False,
    "eviction": "recompute",
}
"""Rules of vLLM's scheduler that differ from the papers' model."""
