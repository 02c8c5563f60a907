"""JSON files: a list of objects, or one object per line (JSONL)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sortedf.errors import TraceError
from sortedf.json_values import json_lines, parse_json, require_object
from sortedf.traces.columns import numbers_in_objects
from sortedf.traces.format import COMMON_TIMES, TextFormat, match_object
from sortedf.traces.prefix_ids import BlockIds
from sortedf.traces.source import Chunk, Source, in_chunks
from sortedf.traces.token_counts import TextTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sortedf.traces.format import Count, Match

    Record = dict[str, Any]
    NumberedRecord = tuple[int, Record]


TEXT_BLOCK = 16
"""Tokens of the blocks by which prompts given as texts are compared."""


def json_source(
    lines: Iterable[str],
    number: int,
    path: str,
    count: Count | None,
    given: Mapping[str, str],
    *,
    listed: bool,
) -> Source:
    """Read one list of objects, or one object per line.

    Parameters
    ----------
    lines : iterable of str
        From the first line that is not blank.
    number : int
        The number of that line.
    path : str
    count : callable, optional
        Counts the tokens of a text, for formats that hold texts.
    given : mapping of str to str
        Names of keys by role; see `match_columns`.
    listed : bool
        Whether the file is one list.

    Raises
    ------
    TraceError
        If it is no JSON of a known format.
    """
    unit = "item" if listed else "line"
    if listed:
        records = _items("".join(lines), number, path)
    else:
        records = json_lines(lines, path, TraceError, number)
    first = next(records, None)
    if first is None:
        raise TraceError(f"{path} has no requests; a trace has an object for each.")
    records = itertools.chain([first], records)
    keys = list(first[1])
    found = match_object(keys, f"{path}: the first object", given)
    if isinstance(found, TextFormat):
        return _text_source(records, found, unit, path, count)
    return _table_source(records, found, keys, unit, path)


def _table_source(
    records: Iterator[NumberedRecord],
    match: Match,
    keys: list[str],
    unit: str,
    path: str,
) -> Source:
    prefill, decode = keys[match.prefill], keys[match.decode]
    arrival = None if match.arrival is None else keys[match.arrival]
    ids_key = "" if match.ids is None else keys[match.ids[0]]
    turns = match.turns and (keys[match.turns[0]], keys[match.turns[1]])

    late = {match.format.arrival, *COMMON_TIMES}

    def chunks() -> Iterator[Chunk]:
        for chunk in in_chunks(records):
            numbers = [number for number, _ in chunk]
            s = _column(chunk, prefill, unit, path)
            o = _column(chunk, decode, unit, path)
            times = None if arrival is None else _column(chunk, arrival, unit, path)
            if times is None:
                _refuse_late_key(chunk, late, unit, path)
            ids = _column(chunk, ids_key, unit, path) if ids_key else None
            both = turns and (
                _column(chunk, turns[0], unit, path),
                _column(chunk, turns[1], unit, path),
            )
            yield Chunk(numbers, s, o, times, ids, both)

    return Source(
        path,
        match.format,
        unit,
        prefill=prefill,
        decode=decode,
        arrival=arrival or "",
        parse=numbers_in_objects,
        chunks=chunks(),
        prefix_ids=ids_key,
        tokens_per_id=0 if match.ids is None else match.ids[1],
        turns=turns,
        names=keys,
    )


def _text_source(
    records: Iterator[NumberedRecord],
    format: TextFormat,
    unit: str,
    path: str,
    count: Count | None,
) -> Source:
    def counts(number: int, record: Record) -> tuple[object, object]:
        where = f"{path}: {unit} {number}"

        def counted(text: str) -> int:
            if count is None:
                raise TraceError(
                    f"{where}: {format.name} holds texts, so a tokenizer is needed to "
                    "count their tokens: give a tokenizer.json or its folder."
                )
            return count(text)

        return format.count(record, where, counted)

    blocks = BlockIds(TEXT_BLOCK)

    def shared(record: Record) -> list[int]:
        prompt = "" if format.prompt is None else format.prompt(record)
        if isinstance(prompt, str):  # a function that counts knows no token ids
            prompt = count.ids(prompt) if isinstance(count, TextTokens) else []
        return blocks.of(prompt)

    def chunks() -> Iterator[Chunk]:
        for chunk in in_chunks(records):
            pairs = [counts(number, record) for number, record in chunk]
            prefill, decode = zip(*pairs, strict=True)
            ids = [shared(record) for _, record in chunk]
            yield Chunk([number for number, _ in chunk], prefill, decode, None, ids)

    return Source(
        path,
        format,
        unit,
        format.prefill,
        format.decode,
        arrival="",
        parse=numbers_in_objects,
        chunks=chunks(),
        prefix_ids="prompt",
        tokens_per_id=TEXT_BLOCK,
    )


def _items(text: str, first: int, path: str) -> Iterator[NumberedRecord]:
    values = parse_json(text, path, TraceError, first)
    for number, value in enumerate(values, start=1):
        yield number, require_object(value, f"{path}: item {number}", TraceError)


def _column(
    chunk: list[NumberedRecord], key: str, unit: str, path: str
) -> list[object]:
    try:
        return [record[key] for _, record in chunk]
    except KeyError:
        number = next(number for number, record in chunk if key not in record)
        raise TraceError(
            f"{path}: {unit} {number} has no {key} but the first object has; every "
            "object must have the same keys."
        ) from None


def _refuse_late_key(
    chunk: list[NumberedRecord], late: set[str], unit: str, path: str
) -> None:
    for number, record in chunk:
        if found := late.intersection(record):
            key = min(found)
            raise TraceError(
                f"{path}: {unit} {number} has {key} but the first object has not; "
                "every object must have the same keys."
            )
