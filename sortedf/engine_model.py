"""The engine's rules that a schedule has to keep, as parameters."""

from __future__ import annotations

from dataclasses import dataclass

from sortedf.arrays import MAX_TOKENS, checked_int


@dataclass(frozen=True, slots=True)
class EngineModel:
    """How the engine holds KV and how much it does in one step.

    The defaults are the papers' model: KV by the token, no caps.

    Attributes
    ----------
    block_size : int
        Tokens per KV block, `B`. A request that holds `k` tokens occupies
        `ceil(k / B)` blocks, and the budget is `floor(M / B)` blocks.
    max_num_seqs : int, optional
        Most requests that run in one step.
    max_batched_tokens : int, optional
        Most tokens that one step processes: the whole prompt of each request that
        starts in it and one token of each other running request. Prompts are not cut
        into chunks here, so a prompt above this can never run.
    """

    block_size: int = 1
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("block_size", "max_num_seqs", "max_batched_tokens"):
            value = getattr(self, name)
            if value is not None or name == "block_size":
                value = checked_int(name, value, minimum=1, maximum=MAX_TOKENS)
                object.__setattr__(self, name, value)

    @property
    def seqs_cap(self) -> int:
        """`max_num_seqs`, or a number that never binds."""
        return MAX_TOKENS if self.max_num_seqs is None else self.max_num_seqs

    @property
    def tokens_cap(self) -> int:
        """`max_batched_tokens`, or a number that never binds."""
        return 2**62 if self.max_batched_tokens is None else self.max_batched_tokens

    def round_up(self, tokens: int) -> int:
        """Tokens of KV that are occupied by `tokens` tokens: whole blocks."""
        return -(-tokens // self.block_size) * self.block_size

    def round_down(self, tokens: int) -> int:
        """Tokens of KV that a budget of `tokens` is worth: whole blocks."""
        return tokens // self.block_size * self.block_size
