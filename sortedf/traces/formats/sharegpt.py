"""ShareGPT: conversations as texts.

Tokens are counted in the bare texts, without the tokens that a chat template or a
tokenizer adds (role markers, begin of sequence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedf.errors import TraceError
from sortedf.traces.format import TextFormat, register_format

if TYPE_CHECKING:
    from sortedf.traces.format import Count

    Record = dict[str, Any]

HUMAN = ("human", "user")
MODEL = ("gpt", "chatgpt", "assistant")


def _sharegpt_counts(record: Record, where: str, counted: Count) -> tuple[int, int]:
    """Count the first human turn and the model's turn that follows it."""
    turns = record.get("conversations")
    if not isinstance(turns, list) or not all(map(_is_turn, turns)):
        raise TraceError(
            f"{where}: conversations must be a list of objects with the texts from "
            "and value."
        )
    speakers = [turn["from"] for turn in turns]
    first = _first_human(turns)
    if first + 1 >= len(turns) or speakers[first + 1] not in MODEL:
        raise TraceError(
            f"{where}: conversations has no human turn with a gpt turn after it, which "
            "are the prompt and the answer; take it out of the file."
        )
    prompt, answer = turns[first]["value"], turns[first + 1]["value"]
    return counted(prompt), counted(answer)


def _first_human(turns: list[dict[str, str]]) -> int:
    """Position of the first human turn; the number of turns if there is none."""
    humans = (i for i, turn in enumerate(turns) if turn["from"] in HUMAN)
    return next(humans, len(turns))


def _prompt(record: Record) -> str:
    """Return the prompt of a conversation that was counted."""
    turns = record["conversations"]
    prompt: str = turns[_first_human(turns)]["value"]
    return prompt


def _is_turn(turn: object) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("from"), str)
        and isinstance(turn.get("value"), str)
    )


register_format(
    TextFormat(
        "ShareGPT",
        "conversations as texts; the first human turn and the answer to it",
        "tokens of the prompt",
        "tokens of the answer",
        key="conversations",
        count=_sharegpt_counts,
        prompt=_prompt,
    )
)
