"""The traces of the splitwise-sim simulator."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "splitwise-sim",
        "traces of the splitwise-sim simulator",
        "prompt_size",
        "token_size",
        "arrival_timestamp",
        clock=True,
    )
)
