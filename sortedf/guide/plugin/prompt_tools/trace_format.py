"""Logs with the columns `asked_ms`, `in_tokens` and `out_tokens`."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "prompt-log",
        "logs of prompt-tools",
        "in_tokens",
        "out_tokens",
        "asked_ms",
        second=1000.0,
    )
)
