"""The Mooncake traces, with times in milliseconds and ids of blocks of 512 tokens."""

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
        seconds_too=True,
        prefix_ids="hash_ids",
        tokens_per_id=512,
    )
)
