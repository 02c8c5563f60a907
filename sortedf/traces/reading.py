"""Reading of traces; file type and format are recognised by content."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import locked, unchecked
from sortedf.errors import TraceError
from sortedf.traces.columns import (
    SECONDS_RULE,
    TOKENS_RULE,
    WHOLE_RULE,
    clock_ns,
    is_clock,
    seconds,
    whole_numbers,
    whole_tokens,
)
from sortedf.traces.csv_file import csv_source
from sortedf.traces.format import ROLES
from sortedf.traces.json_file import json_source
from sortedf.traces.opening import opened, text_lines
from sortedf.traces.parquet_file import PARQUET_MAGIC, parquet_source
from sortedf.traces.prefix_ids import PrefixIds
from sortedf.traces.read_report import ReadReport, columns_like_times
from sortedf.traces.sessions import FIRST_TURN, Sessions
from sortedf.traces.time_unit import UNITS, check_unit, unit_of
from sortedf.traces.token_counts import token_counter
from sortedf.traces.trace import Trace

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.instance import Instance
    from sortedf.traces.columns import Column
    from sortedf.traces.format import Count
    from sortedf.traces.source import Source

    Turns = tuple[NDArray[np.int64], NDArray[Any]]
    Tokenizer = Callable[[str], int] | str | os.PathLike[str]


def read(
    path: str | os.PathLike[str],
    kv_budget: int | None = None,
    *,
    engine: EngineModel | None = None,
    step_time_s: float = 1.0,
    backlog: bool = False,
    drop_oversize: bool = False,
    tokenizer: Tokenizer | None = None,
) -> Instance:
    """Read a trace as an instance, its requests in the file's order.

    Parameters
    ----------
    path, tokenizer
        As in `read_trace`.
    kv_budget, engine, step_time_s, backlog, drop_oversize
        As in `Trace.to_instance`.

    Returns
    -------
    Instance

    Raises
    ------
    TraceError
        If the file cannot be read or an entry is no request.
    OversizeError
        If a request can never run and `drop_oversize` is not set, or if none can.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sortedf import read
    >>> from sortedf.traces import Trace, write_trace
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "trace.csv")
    ...     write_trace(Trace(prefill=[5, 6, 1], decode=[3, 2, 1]), path)
    ...     instance = read(path, kv_budget=10)
    >>> instance.prefill.tolist(), instance.decode.tolist()
    ([5, 6, 1], [3, 2, 1])
    """
    trace = read_trace(path, tokenizer=tokenizer)
    instance, _ = trace.to_instance(
        kv_budget,
        engine=engine,
        step_time_s=step_time_s,
        backlog=backlog,
        drop_oversize=drop_oversize,
    )
    return instance


def read_trace(
    path: str | os.PathLike[str],
    *,
    tokenizer: Tokenizer | None = None,
    time_unit: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Trace:
    """Read a trace from CSV, JSON, JSONL or Parquet, plain or gzip.

    The name of the file does not matter. `sortedf formats` lists the formats, and
    `sortedf.traces.format` has their table.

    Parameters
    ----------
    path : path
    tokenizer : callable or path, optional
        For formats that hold texts: a function from a text to its number of tokens,
        or a tokenizer.json or its folder. Only the texts are counted, without the
        tokens of a chat template.
    time_unit : str, optional
        Unit of arrival times that are numbers: s, ms, us or ns. By default it is that
        of the format, unless the name of the column or the numbers say otherwise; see
        `sortedf.traces.time_unit`.
    columns : mapping of str to str, optional
        Names of the columns with `prefill`, `decode` and `arrival`, if the file has
        others than a known format.

    Returns
    -------
    Trace
        Requests in the file's order.

    Raises
    ------
    TraceError
        If the file cannot be read or an entry is no request; one line that names file,
        line and field.
    MissingExtraError
        If the package that reads this type of file is missing.
    """
    trace, _ = read_reported(
        path, tokenizer=tokenizer, time_unit=time_unit, columns=columns
    )
    return trace


def read_reported(
    path: str | os.PathLike[str],
    *,
    tokenizer: Tokenizer | None = None,
    time_unit: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Trace, ReadReport]:
    """Read a trace as `read_trace` does; also return what was read from which columns.

    Raises
    ------
    ValueError
        If `time_unit` or a key of `columns` is unknown.
    """
    check_unit(time_unit)
    given = dict(columns or {})
    if unknown := sorted(set(given) - set(ROLES)):
        raise ValueError(
            f"columns: {unknown[0]!r} is unknown; choose from {', '.join(ROLES)}."
        )
    name = os.fsdecode(path)
    count = None if tokenizer is None else token_counter(tokenizer)
    with opened(name) as file:
        return _collected(_source(file, name, count, given), time_unit)


def _source(
    file: io.BufferedReader[Any],
    path: str,
    count: Count | None,
    given: Mapping[str, str],
) -> Source:
    head = file.peek(len(PARQUET_MAGIC))
    if head.startswith(PARQUET_MAGIC):
        return parquet_source(file, path, given)
    if b"\0" in head:
        raise TraceError(
            f"{path} is no text (byte {head.index(0) + 1} is 0); a trace is CSV, JSON "
            "or JSONL in UTF-8, or Parquet."
        )
    lines = text_lines(file, path)
    number, first = next(
        ((n, line) for n, line in enumerate(lines, start=1) if line.strip()), (0, "")
    )
    if not first:
        raise TraceError(f"{path} is empty; a trace has at least one request.")
    if first.lstrip().startswith(("{", "[")):
        listed = first.lstrip().startswith("[")
        rest = itertools.chain([first], lines)
        return json_source(rest, number, path, count, given, listed=listed)
    return csv_source(first, number, file, path, given)


def _collected(source: Source, unit: str | None) -> tuple[Trace, ReadReport]:
    rows, prefills, decodes, arrivals = [], [], [], []
    ids: list[NDArray[np.int64]] = []
    turns: list[Turns] = []
    clock = None
    for chunk in source.chunks:
        row = np.asarray(chunk.row, dtype=np.int64)
        rows.append(row)
        prefills.append(_tokens(source, source.prefill, chunk.prefill, row))
        decodes.append(_tokens(source, source.decode, chunk.decode, row))
        if chunk.prefix_ids is not None:
            location = source.location(source.prefix_ids, row)
            ids += source.parse_ids(chunk.prefix_ids, location)
        if chunk.turns is not None:
            turns.append(_turns(source, chunk.turns, row))
        if chunk.arrival is not None:
            if clock is None:  # the first row determines the format of all times
                clock = source.format.clock and is_clock(chunk.arrival[0])
            arrivals.append(_times(source, chunk.arrival, row, clock))
    if not rows:
        raise TraceError(f"{source.path} has a header but no requests.")
    arrival_s, time_unit, guess = np.zeros(sum(map(len, rows))), "", ""
    if arrivals:
        times = np.concatenate(arrivals)
        time_unit = "date"
        if not clock:
            numbers = times.astype(np.float64)
            time_unit, guess = unit_of(numbers, source.arrival, source.format, unit)
        arrival_s = (times - times.min()) / (1e9 if clock else UNITS[time_unit])
    trace = unchecked(  # the columns are checked, with their places in the file
        Trace,
        prefill=locked(np.concatenate(prefills)),
        decode=locked(np.concatenate(decodes)),
        arrival_s=locked(arrival_s),
        row=locked(np.concatenate(rows)),
        source=source.format.name,
        name=source.path,
        prefix_ids=PrefixIds.of_lists(ids, source.tokens_per_id)
        if any(map(len, ids))
        else None,
        sessions=_sessions(source, turns, np.concatenate(rows), arrival_s)
        if turns
        else None,
    )
    return trace, ReadReport(
        source.format.name,
        source.columns,
        time_unit,
        guess,
        () if arrivals else columns_like_times(source.names),
    )


def _turns(
    source: Source, columns: tuple[Column, Column], row: NDArray[np.int64]
) -> Turns:
    """Turn before each request, and its own name or its think time."""
    assert source.turns is not None, "a chunk has the columns that the source names"
    previous, other = map(source.location, source.turns, (row, row))
    names = source.parse(columns[0], previous, WHOLE_RULE)
    before = whole_numbers(names, columns[0], previous)
    if source.format.turn:
        values = source.parse(columns[1], other, WHOLE_RULE)
        return before, whole_numbers(values, columns[1], other)
    values = source.parse(columns[1], other, SECONDS_RULE)
    return before, seconds(values, columns[1], other)


def _sessions(
    source: Source,
    turns: list[Turns],
    row: NDArray[np.int64],
    arrival_s: NDArray[np.float64],
) -> Sessions | None:
    """Sessions of a whole file; None if no request follows another."""
    before, other = (np.concatenate(part) for part in zip(*turns, strict=True))
    if source.format.turn:
        found = Sessions.of_recorded(other.tolist(), before.tolist(), arrival_s)
    else:
        _refuse_later(source, before, row)
        found = Sessions(before - 1, other)
    return None if (found.previous == FIRST_TURN).all() else found


def _refuse_later(
    source: Source, before: NDArray[np.int64], row: NDArray[np.int64]
) -> None:
    assert source.turns is not None
    bad = (before < 0) | (before > np.arange(len(before)))
    if bad.any():
        i = int(np.argmax(bad))
        rule = f"the number of an earlier request, from 1 to {i}, or 0"
        source.location(source.turns[0], row).refuse(i, str(before[i]), rule)


def _tokens(
    source: Source, column: str, values: Column, row: NDArray[np.int64]
) -> NDArray[np.int64]:
    location = source.location(column, row)
    return whole_tokens(source.parse(values, location, TOKENS_RULE), values, location)


def _times(
    source: Source, values: Column, row: NDArray[np.int64], clock: bool
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Integer nanoseconds since 1970, or numbers in the format's unit."""
    location = source.location(source.arrival, row)
    if clock:
        return clock_ns(values, location)
    return seconds(source.parse(values, location, SECONDS_RULE), values, location)
