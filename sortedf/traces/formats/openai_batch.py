"""The OpenAI batch format: requests as texts.

Tokens are counted in the bare texts, without the tokens that a chat template or a
tokenizer adds (role markers, begin of sequence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedf.errors import TraceError
from sortedf.shown import shown_json
from sortedf.traces.format import TextFormat, register_format

if TYPE_CHECKING:
    from sortedf.traces.format import Count

    Record = dict[str, Any]


def _batch_counts(record: Record, where: str, counted: Count) -> tuple[int, object]:
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


def _prompt_length(body: Record, where: str, counted: Count) -> int:
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


def _prompt(record: Record) -> str | list[int]:
    """Return the prompt of a request that was counted."""
    body = record["body"]
    if "messages" in body:
        return "\n".join(_message_texts(body["messages"], ""))
    prompt: str | list[int] = body["prompt"]
    return prompt


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


register_format(
    TextFormat(
        "OpenAI batch",
        "requests as texts; an answer is as long as the request allows",
        "tokens of the prompt",
        "the answer's token limit",
        key="body",
        count=_batch_counts,
        prompt=_prompt,
    )
)
