"""Writing of traces in the format `sortedf`."""

from __future__ import annotations

import gzip
import io
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sortedf.atomic import atomic_path
from sortedf.traces.parquet_file import write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sortedf.traces.trace import Trace

SUFFIXES = {".csv": "csv", "": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def write_trace(
    trace: Trace, path: str | os.PathLike[str], *, format: str | None = None
) -> None:
    """Write a trace to a file atomically; `read_trace` reads it back.

    Parameters
    ----------
    trace : Trace
    path : path
        If it ends with ".gz", CSV and JSONL are compressed.
    format : {"csv", "jsonl", "parquet"}, optional
        By the suffix of `path` if left out, CSV if there is none.

    Raises
    ------
    OutputError
        If the file cannot be written.
    ValueError
        If the format is unknown.
    MissingExtraError
        If the format is Parquet and the package `pyarrow` is missing.
    """
    name = os.fsdecode(path)
    packed = name.endswith(".gz")
    format = _format(name.removesuffix(".gz"), format)
    if format == "parquet" and packed:
        raise ValueError(f"{name}: Parquet is already compressed; leave out .gz.")
    with atomic_path(path) as temporary:
        if format == "parquet":
            write_parquet(temporary, _columns(trace))
        else:
            _write_lines(_LINES[format](trace), temporary, packed)


def _format(name: str, format: str | None) -> str:
    if format is None:
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(
                f"{name}: unknown suffix {suffix!r}; choose one of: .csv, .jsonl, "
                ".parquet, or give the format."
            )
        return SUFFIXES[suffix]
    if format not in SUFFIXES.values():
        raise ValueError(f"unknown format {format!r}; choose csv, jsonl or parquet.")
    return format


def _columns(trace: Trace) -> dict[str, list[Any]]:
    columns = {
        "arrival_s": trace.arrival_s.tolist(),
        "prefill_tokens": trace.prefill.tolist(),
        "decode_tokens": trace.decode.tolist(),
    }
    if (ids := trace.prefix_ids) is not None:
        columns[f"hash_ids_{ids.tokens_per_id}"] = [
            ids[i].tolist() for i in range(len(ids))
        ]
    if (sessions := trace.sessions) is not None:
        columns["previous"] = (sessions.previous + 1).tolist()
        columns["think_s"] = sessions.think_s.tolist()
    return columns


def _texts(values: list[Any]) -> Iterator[str]:
    """Shortest text of each number that reads back as the same."""
    return (repr(value).removesuffix(".0") for value in values)


def _csv_lines(trace: Trace) -> Iterator[str]:
    columns = _columns(trace)
    yield f"{','.join(columns)}\n"
    for row in zip(*map(_texts, columns.values()), strict=True):
        # A list of ids is separated by spaces.
        yield f"{','.join([*row[:3], *map(_without_commas, row[3:])])}\n"


def _without_commas(text: str) -> str:
    return text[1:-1].replace(",", "") if text.startswith("[") else text


def _jsonl_lines(trace: Trace) -> Iterator[str]:
    columns = _columns(trace)
    line = ", ".join(f'"{name}": %s' for name in columns)
    for row in zip(*map(_texts, columns.values()), strict=True):
        yield f"{{{line % row}}}\n"


_LINES = {"csv": _csv_lines, "jsonl": _jsonl_lines}


def _write_lines(lines: Iterator[str], path: Path, packed: bool) -> None:
    with ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "wb"))
        if packed:
            # No name and time, so that the same trace gives the same bytes.
            file = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            stack.enter_context(file)
        text = io.TextIOWrapper(file, encoding="ascii", newline="\n")
        stack.enter_context(text).writelines(lines)
