"""The Qwen-Bailian traces, with times in seconds and ids of blocks of 16 tokens.

`parent_chat_id` names the turn of a conversation that a request follows.
"""

from __future__ import annotations

from sortedf.traces.format import Format, register_format

register_format(
    Format(
        "Qwen-Bailian",
        "Qwen-Bailian usage traces",
        "input_length",
        "output_length",
        "timestamp",
        also="chat_id",
        prefix_ids="hash_ids",
        tokens_per_id=16,
        previous="parent_chat_id",
        turn="chat_id",
    )
)
