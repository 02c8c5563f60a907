"""The Mooncake traces, with times in milliseconds."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "Mooncake",
        "Mooncake traces",
        "input_length",
        "output_length",
        "timestamp",
        second=1000.0,
    )
)
