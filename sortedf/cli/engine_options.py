"""The options of the engine: a preset, and numbers that override it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import typer

from sortedf.arrays import MAX_TOKENS
from sortedf.engine_model import EngineModel
from sortedf.engine_presets import PRESETS, preset_fields

BlockSizeOption = Annotated[
    int | None, typer.Option(help="Tokens per KV block.", min=1)
]
MaxNumSeqsOption = Annotated[
    int | None, typer.Option(help="Most requests running in a step.", min=1)
]
MaxBatchedTokensOption = Annotated[
    int | None, typer.Option(help="Most tokens processed in a step.", min=1)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """An engine; each field is an option, and None leaves it to the preset."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = PRESETS["papers"]
    """Defaults of a command if no preset is named."""

    kv_budget: Annotated[
        str | None,
        typer.Option(help="KV cache of the engine, in tokens. Required.", metavar="M"),
    ] = None
    engine_preset: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(PRESETS)}; the options here override single numbers.",
            metavar="NAME",
        ),
    ] = None
    block_size: BlockSizeOption = None
    max_num_seqs: MaxNumSeqsOption = None
    max_batched_tokens: MaxBatchedTokensOption = None
    chunked_prefill: Annotated[
        bool | None,
        typer.Option(
            "--chunked-prefill/--whole-prefill",
            help="Cut prompts to the remaining tokens of a step, or never.",
        ),
    ] = None
    long_prefill_token_threshold: Annotated[
        int | None,
        typer.Option(help="Most tokens of one prompt in a step; 0: no limit.", min=0),
    ] = None
    reserve_prompt: Annotated[
        bool | None,
        typer.Option(help="Admit a request only if its whole prompt fits."),
    ] = None
    watermark: Annotated[
        float | None,
        typer.Option(help="Share of the blocks that admission keeps free."),
    ] = None
    eviction: Annotated[
        Literal["recompute", "restart"] | None,
        typer.Option(help="An evicted request keeps its tokens, or starts again."),
    ] = None
    prefix_caching: Annotated[
        bool | None,
        typer.Option(
            "--prefix-caching/--no-prefix-caching",
            help="Reuse KV that is still in the cache, as vLLM does by default: of "
            "prompts that begin alike (by a trace's hash_ids) and of a "
            "request that was preempted.",
        ),
    ] = None

    def engine_model(self) -> EngineModel:
        """Return the engine described by the options."""
        fields: dict[str, Any] = dict(self.DEFAULTS)
        if self.engine_preset is not None:
            fields = preset_fields(self.engine_preset)
        for name in (
            "block_size", "max_num_seqs", "max_batched_tokens", "chunked_prefill",
            "long_prefill_token_threshold", "reserve_prompt", "watermark", "eviction",
            "prefix_caching",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        return EngineModel(parse_kv_budget(self.kv_budget), **fields)


def parse_kv_budget(text: str | None) -> int:
    """Parse the KV budget in tokens."""
    allowed = f"give the size of the KV cache in tokens, from 1 to {MAX_TOKENS}."
    if text is None:
        raise ValueError(f"--kv-budget is missing: {allowed}")
    digits = text.strip()
    plain = digits.isascii() and digits.isdigit()  # int() accepts 1_0 as 10
    few = len(digits.lstrip("0")) <= len(str(MAX_TOKENS))
    budget = int(digits) if plain and few else 0
    if not 1 <= budget <= MAX_TOKENS:
        raise ValueError(f"--kv-budget {text}: {allowed}")
    return budget
