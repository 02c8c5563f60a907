"""The columns that `write_trace` writes."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "sortedf",
        "what `generate` and `write_trace` write",
        "prefill_tokens",
        "decode_tokens",
        "arrival_s",
    )
)
