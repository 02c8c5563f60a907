"""The Azure LLM inference traces."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "Azure",
        "Azure LLM inference traces",
        "ContextTokens",
        "GeneratedTokens",
        "TIMESTAMP",
        clock=True,
    )
)
