"""The single responses that LLMPerf writes."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "LLMPerf",
        "single responses of LLMPerf",
        "number_input_tokens",
        "number_output_tokens",
        "start_time",
        clock=True,
    )
)
