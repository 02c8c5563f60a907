"""The traces of LLMServingSim, with times in nanoseconds."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "LLMServingSim",
        "traces of LLMServingSim",
        "input_toks",
        "output_toks",
        "arrival_time_ns",
        second=1e9,
        clock=True,
    )
)
