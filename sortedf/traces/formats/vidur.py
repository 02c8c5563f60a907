"""The traces of the Vidur simulator."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "Vidur",
        "traces of the Vidur simulator",
        "num_prefill_tokens",
        "num_decode_tokens",
        "arrived_at",
    )
)
