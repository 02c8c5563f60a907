"""Formats that hold texts instead of lengths: ShareGPT and the OpenAI batch format.

Tokens are counted in the bare texts, without the tokens that a chat template or a
tokenizer adds (role markers, begin of sequence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedf.errors import TraceError
from sortedf.shown import shown_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from sortedf.traces.token_counts import Count

    Record = dict[str, Any]

HUMAN = ("human", "user")
MODEL = ("gpt", "chatgpt", "assistant")

CHAT_COLUMNS = {
    "ShareGPT": ("tokens of the prompt", "tokens of the answer"),
    "OpenAI batch": ("tokens of the prompt", "the answer's token limit"),
}
"""Names of the two counts in messages, by format."""


def counts_of(
    record: Record, name: str, where: str, count: Count | None
) -> tuple[object, object]:
    """Prefill and decode of one object of the format `name`, not yet checked.

    Raises
    ------
    TraceError
        If the object is not of the format; the message begins with `where`, its file
        and line.
    """

    def counted(text: str) -> int:
        if count is None:
            raise TraceError(
                f"{where}: {name} holds texts, so a tokenizer is needed to count their "
                "tokens: give a tokenizer.json or its folder."
            )
        return count(text)

    if name == "ShareGPT":
        return _sharegpt_counts(record, where, counted)
    return _batch_counts(record, where, counted)


def _sharegpt_counts(
    record: Record, where: str, counted: Callable[[str], int]
) -> tuple[int, int]:
    """Count the first human turn and the model's turn that follows it."""
    turns = record.get("conversations")
    if not isinstance(turns, list) or not all(map(_is_turn, turns)):
        raise TraceError(
            f"{where}: conversations must be a list of objects with the texts from "
            "and value."
        )
    speakers = [turn["from"] for turn in turns]
    first = next((i for i, who in enumerate(speakers) if who in HUMAN), len(turns))
    if first + 1 >= len(turns) or speakers[first + 1] not in MODEL:
        raise TraceError(
            f"{where}: conversations has no human turn with a gpt turn after it, which "
            "are the prompt and the answer; take it out of the file."
        )
    prompt, answer = turns[first]["value"], turns[first + 1]["value"]
    return counted(prompt), counted(answer)


def _is_turn(turn: object) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("from"), str)
        and isinstance(turn.get("value"), str)
    )


def _batch_counts(
    record: Record, where: str, counted: Callable[[str], int]
) -> tuple[int, object]:
    """Count the prompt; the answer length is the request's token limit."""
    body = record.get("body")
    if not isinstance(body, dict):
        raise TraceError(f"{where}: body must be an object, a request's parameters.")
    limits = [body.get(key) for key in ("max_completion_tokens", "max_tokens")]
    decode = next((limit for limit in limits if limit is not None), None)
    if decode is None:
        raise TraceError(
            f"{where}: body has neither max_completion_tokens nor max_tokens, which "
            "is the answer's length."
        )
    if body.get("n", 1) != 1:
        raise TraceError(
            f"{where}: body.n = {shown_json(body['n'])} but must be 1, one answer a "
            "request."
        )
    return _prompt_length(body, where, counted), decode


def _prompt_length(body: Record, where: str, counted: Callable[[str], int]) -> int:
    if "messages" in body:
        return counted("\n".join(_message_texts(body["messages"], where)))
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return counted(prompt)
    if isinstance(prompt, list) and prompt and all(type(t) is int for t in prompt):
        return len(prompt)  # token ids, counted already
    raise TraceError(
        f"{where}: body needs messages (a list of messages), or prompt (one text, or "
        "one list of token ids)."
    )


def _message_texts(messages: object, where: str) -> list[str]:
    if not isinstance(messages, list) or not messages:
        raise TraceError(f"{where}: body.messages must be a list of messages.")
    texts = []
    for i, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content}]
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str):
                raise TraceError(
                    f"{where}: body.messages[{i}].content must be a text or a list of "
                    "text parts."
                )
            texts.append(text)
    return texts
