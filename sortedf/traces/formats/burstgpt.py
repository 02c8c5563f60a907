"""The BurstGPT traces."""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "BurstGPT",
        "BurstGPT traces",
        "Request tokens",
        "Response tokens",
        "Timestamp",
        zero_note="BurstGPT logs a failed request with 0 response tokens; take such "
        "rows out of the file",
    )
)
