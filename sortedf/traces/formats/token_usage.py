"""Usage logs named as many services name them."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "input/output tokens",
        "usage as services log it: input_tokens, output_tokens",
        "input_tokens",
        "output_tokens",
        "created_at",
        clock=True,
    )
)
