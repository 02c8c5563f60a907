"""The columns that `write_trace` writes.

Where prompts share prefixes, there is a column `hash_ids_B` with the ids of each
prompt's blocks of `B` tokens (`sortedf.traces.prefix_ids`): in CSV separated by spaces.

Where requests follow others in sessions (`sortedf.traces.sessions`), `previous` is the
number of the request, from 1 in the file's order, that must have completed `think_s`
seconds before, and 0 for a request that arrives at its `arrival_s`.
"""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "sortedf",
        "what `generate` and `write_trace` write",
        "prefill_tokens",
        "decode_tokens",
        "arrival_s",
        prefix_ids="hash_ids",
        previous="previous",
        think="think_s",
    )
)
