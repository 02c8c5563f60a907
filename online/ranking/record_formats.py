"""Formats of files with prompts and answers, and their conversion to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from online.ranking.ranking_error import RankingError
from online.ranking.rows import Row
from sortedf.shown import shown_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from online.ranking.records import Record
    from sortedf.traces.format import Count

HUMAN = ("human", "user")
MODEL = ("gpt", "chatgpt", "assistant")


class NoLength(Exception):
    """A failed request, which has no answer length."""


def format_of(record: Record) -> str:
    """Recognise the format by the keys of a file's first object."""
    keys = set(record.content)
    if "conversations" in keys:
        return "ShareGPT"
    if {"instruction", "output"} <= keys:
        return "Alpaca"
    if "output_lens" in keys:
        return "vLLM benchmark"
    if "custom_id" in keys and "response" in keys:
        return "OpenAI batch"
    if "custom_id" in keys and "body" in keys:
        raise RankingError(
            f"{record.where}: this is a batch's input, which has no answers; give its "
            "output file, and the input as the prompts."
        )
    return "rows"


def own_row(record: Record, count: Count | None) -> Row:
    """`prompt`, `response_tokens` (or `response`, a text), `model` and `source`."""
    prompt = _prompt(record, record.text("prompt"))
    if "response_tokens" in record.content or "response" not in record.content:
        tokens = length(record, record.content, "response_tokens")
    else:
        tokens = _counted(record, record.text("response"), count)
    return Row(prompt, tokens, record.text("model", ""), record.text("source", ""))


def alpaca_row(record: Record, count: Count | None) -> Row:
    """Read `instruction`, followed by `input` unless empty, and `output`."""
    parts = [record.text("instruction"), record.text("input", "")]
    prompt = _prompt(record, "\n".join(part for part in parts if part))
    model = record.text("generator", "")
    return Row(prompt, _counted(record, record.text("output"), count), model)


def sharegpt_row(record: Record, count: Count | None) -> Row:
    """Read the first human turn and the model's turn that follows it."""
    turns = record.get("conversations", list, "a list")
    speakers = []
    for turn in turns:
        if not isinstance(turn, dict) or not isinstance(turn.get("value"), str):
            raise RankingError(
                f"{record.where}: conversations must be a list of objects with the "
                "texts from and value."
            )
        speakers.append(turn.get("from"))
    first = next((i for i, who in enumerate(speakers) if who in HUMAN), len(speakers))
    if first + 1 >= len(speakers) or speakers[first + 1] not in MODEL:
        raise RankingError(
            f"{record.where}: conversations has no human turn with a gpt turn after "
            "it, which are the prompt and the answer; take it out of the file."
        )
    prompt = _prompt(record, turns[first]["value"])
    answer = _counted(record, turns[first + 1]["value"], count)
    return Row(prompt, answer, record.text("model", ""))


def batch_row(record: Record, prompts: dict[str, str]) -> Row:
    """`usage.completion_tokens` of a batch's output line, with its input's prompt.

    Raises
    ------
    NoLength
        If the request failed.
    """
    custom_id = record.text("custom_id")
    if custom_id not in prompts:
        raise RankingError(
            f"{record.where}: custom_id {custom_id!r} is not in the batch's input."
        )
    response = record.content.get("response")
    if record.content.get("error") or not isinstance(response, dict):
        raise NoLength
    body = response.get("body")
    if response.get("status_code") != 200 or not isinstance(body, dict):
        raise NoLength
    usage = body.get("usage")
    if not isinstance(usage, dict):
        raise RankingError(f"{record.where}: response.body has no usage.")
    if len(body.get("choices") or [None]) != 1:
        raise RankingError(
            f"{record.where}: {len(body['choices'])} answers but must be one; their "
            "lengths are only counted together."
        )
    tokens = length(record, usage, "completion_tokens")
    return Row(prompts[custom_id], tokens, str(body.get("model") or ""))


def batch_prompts(records: Sequence[Record]) -> dict[str, str]:
    """Prompts of a batch's input, by custom_id."""
    found: dict[str, str] = {}
    for record in records:
        custom_id = record.text("custom_id")
        if custom_id in found:
            raise RankingError(f"{record.where}: custom_id {custom_id!r} occurs twice.")
        body = record.get("body", dict, "an object, a request's parameters")
        found[custom_id] = _prompt(record, _body_text(record, body))
    return found


def benchmark_rows(record: Record, prompts: Sequence[Record]) -> tuple[list[Row], int]:
    """Rows of a vLLM benchmark's result, and the number of failed requests.

    The result does not contain prompts: they are taken from the data set, in its order,
    so the benchmark must have run with `--disable-shuffle`.
    """
    lengths = record.get("output_lens", list, "a list of lengths")
    errors = record.content.get("errors") or [""] * len(lengths)
    if len(lengths) != len(prompts) or len(errors) != len(lengths):
        raise RankingError(
            f"{record.where} has {len(lengths)} answers but there are {len(prompts)} "
            "prompts; give the data set of the benchmark, cut to the same number."
        )
    model = str(record.content.get("model_id") or "")
    rows = []
    for i, (asked, failed) in enumerate(zip(prompts, errors, strict=True)):
        if not failed:
            tokens = length(
                record, {f"output_lens[{i}]": lengths[i]}, f"output_lens[{i}]"
            )
            rows.append(Row(_prompt(asked, asked.text("prompt")), tokens, model))
    return rows, len(lengths) - len(rows)


BY_RECORD: dict[str, Callable[[Record, Count | None], Row]] = {
    "rows": own_row,
    "Alpaca": alpaca_row,
    "ShareGPT": sharegpt_row,
}
"""Formats whose records contain both prompt and answer."""


def length(record: Record, content: dict[str, Any], key: str) -> int:
    """Return a field that is a length, an integer of at least 1."""
    if key not in content:
        raise RankingError(f"{record.where}: the field {key!r} is missing.")
    value = content[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RankingError(
            f"{record.where}: {key} = {shown_json(value)} but must be an integer, 1 or "
            "more."
        )
    return value


def _counted(record: Record, text: str, count: Count | None) -> int:
    if count is None:
        raise RankingError(
            f"{record.where}: the answer is a text, so a tokenizer is needed to count "
            "its tokens: give a tokenizer.json or its folder."
        )
    tokens = count(text)
    if tokens < 1:
        raise RankingError(f"{record.where}: the answer is empty; take it out.")
    return tokens


def _prompt(record: Record, text: str) -> str:
    if not text.strip():
        raise RankingError(f"{record.where}: the prompt is empty.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RankingError(
            f"{record.where}: the prompt is no valid Unicode (half of a pair of "
            "surrogates)."
        ) from None
    return text


def _body_text(record: Record, body: dict[str, Any]) -> str:
    """Prompt or messages of a request as one text."""
    if isinstance(body.get("prompt"), str):
        return str(body["prompt"])
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RankingError(
            f"{record.where}: body needs messages (a list of messages) or prompt (one "
            "text)."
        )
    texts: list[Any] = []
    for i, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content}]
        found = [part.get("text") for part in parts if isinstance(part, dict)]
        if not found or not all(isinstance(text, str) for text in found):
            raise RankingError(
                f"{record.where}: body.messages[{i}].content must be a text or a list "
                "of text parts."
            )
        texts += found
    return "\n".join(texts)
