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

    from numpy.typing import NDArray

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
            write_parquet(temporary, dict(_columns(trace)))
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


def _columns(trace: Trace) -> Iterator[tuple[str, NDArray[Any]]]:
    yield "arrival_s", trace.arrival_s
    yield "prefill_tokens", trace.prefill
    yield "decode_tokens", trace.decode


def _rows(trace: Trace) -> Iterator[tuple[str, int, int]]:
    # repr() returns the shortest decimal that reads back as the same float.
    times = (repr(time).removesuffix(".0") for time in trace.arrival_s.tolist())
    return zip(times, trace.prefill.tolist(), trace.decode.tolist(), strict=True)


def _csv_lines(trace: Trace) -> Iterator[str]:
    yield "arrival_s,prefill_tokens,decode_tokens\n"
    for time, s, o in _rows(trace):
        yield f"{time},{s},{o}\n"


def _jsonl_lines(trace: Trace) -> Iterator[str]:
    for time, s, o in _rows(trace):
        yield f'{{"arrival_s": {time}, "prefill_tokens": {s}, "decode_tokens": {o}}}\n'


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
