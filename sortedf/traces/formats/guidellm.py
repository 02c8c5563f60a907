"""The data sets of GuideLLM."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "GuideLLM",
        "data sets of GuideLLM",
        "prompt_tokens_count",
        "output_tokens_count",
        "timestamp",
        clock=True,
    )
)
