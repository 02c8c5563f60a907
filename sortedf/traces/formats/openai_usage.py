"""The usage fields of OpenAI's answers."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "OpenAI usage",
        "usage fields of the OpenAI API, as services log them",
        "prompt_tokens",
        "completion_tokens",
        "created",
        clock=True,
    )
)
