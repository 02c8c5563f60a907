"""A run's log as a file of JSON lines, for every engine.

The first line is a header; then come the requests, the steps and the pauses, each line
with its `kind`. A step may have `duration_s`, its measured duration in seconds, besides
the times of the run's clock. Files whose names end in .gz are compressed.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from online.run_log import RunLog, StepTable
from sortedf.atomic import atomic_path
from sortedf.errors import SortedfError
from sortedf.json_values import read_lines
from sortedf.shown import shown_json, shown_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from numpy.typing import ArrayLike, NDArray

    Column = NDArray[Any]
    """Floats if the name ends in _s, else integers."""

FORMAT = 2

REQUEST_COLUMNS = (
    "prefill", "decode", "arrival_s", "start_step", "first_token_step",
    "completion_step", "preemptions", "recomputed_tokens", "cached_tokens",
)  # fmt: skip
STEP_COLUMNS = tuple(field.name for field in fields(StepTable))
PAUSE_COLUMNS = ("request", "after_step", "step")


class LogError(SortedfError, ValueError):
    """A log file cannot be read; the message names file and line."""


def write_log(
    log: RunLog, path: str | PathLike[str], *, duration_s: ArrayLike | None = None
) -> None:
    """Write a log, atomically.

    Parameters
    ----------
    log : RunLog
    path : path
    duration_s : array_like of float, shape (num_steps,), optional
        Measured duration of each step in seconds; `sortedf calibrate` reads them.
    """
    steps = {name: getattr(log.steps, name) for name in STEP_COLUMNS}
    if duration_s is not None:
        steps["duration_s"] = np.asarray(duration_s, dtype=np.float64)
    requests = {name: getattr(log, name) for name in REQUEST_COLUMNS}
    pauses = dict(zip(PAUSE_COLUMNS, log.pauses.T, strict=True))
    head = {"kind": "run", "format": FORMAT, "refused": log.refused}
    with atomic_path(path) as unfinished:
        text = "".join(
            f"{json.dumps(row)}\n"
            for row in (
                head,
                *_rows("request", requests),
                *_rows("step", steps),
                *_rows("pause", pauses),
            )
        ).encode()
        if str(path).endswith(".gz"):
            text = gzip.compress(text, mtime=0)  # the same bytes for the same run
        unfinished.write_bytes(text)


def read_log(path: str | PathLike[str]) -> RunLog:
    """Read a log.

    Raises
    ------
    LogError
        If the file cannot be read or is no log; the message names the line.
    """
    rows = list(read_lines(path, LogError))
    if not rows or rows[0][1].get("kind") != "run":
        raise LogError(f'{path} is no run\'s log: its first line has no kind "run".')
    head = rows[0][1]
    if head.get("format") != FORMAT:
        raise LogError(
            f"{path} has format {shown_repr(head.get('format'))}, not {FORMAT}."
        )
    requests: dict[str, Any] = columns(path, _of_kind("request", rows), REQUEST_COLUMNS)
    pauses = columns(path, _of_kind("pause", rows), PAUSE_COLUMNS)
    steps: dict[str, Any] = columns(path, _of_kind("step", rows), STEP_COLUMNS)
    return RunLog(
        **requests,
        pauses=np.stack([pauses[name] for name in PAUSE_COLUMNS], axis=1),
        steps=StepTable(**steps),
        refused=_refused(path, head.get("refused", {})),
    )


def _refused(path: str | PathLike[str], found: object) -> dict[int, str]:
    """Check why requests were refused, by their ids."""
    if not isinstance(found, dict) or not all(i.isdecimal() for i in found):
        raise LogError(
            f"{path}: line 1: refused is {shown_json(found)} but must be an object "
            "with the ids of requests."
        )
    return {int(i): str(why) for i, why in found.items()}


def columns(
    path: str | PathLike[str],
    rows: Iterable[tuple[int, dict[str, Any]]],
    names: Iterable[str],
) -> dict[str, Column]:
    """Convert rows to one array per name; seconds are floats, others integers."""
    rows = list(rows)
    found: dict[str, Column] = {}
    for name in names:
        is_float = name.endswith("_s")
        values = [_number(path, number, row, name, is_float) for number, row in rows]
        found[name] = np.array(values, dtype=np.float64 if is_float else np.int64)
    return found


def _number(
    path: str | PathLike[str],
    number: int,
    row: dict[str, Any],
    name: str,
    is_float: bool,
) -> float:
    if name not in row:
        raise LogError(f"{path}: line {number}: the field {name!r} is missing.")
    value = row[name]
    allowed = int | float if is_float else int
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise LogError(
            f"{path}: line {number}: {name} is {shown_json(value)} but must be "
            f"{'a number' if is_float else 'an integer'}."
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise LogError(
            f"{path}: line {number}: {name} is {shown_json(value)} but must have at "
            "most 63 bits."
        )
    return value


def _rows(kind: str, table: Mapping[str, Column]) -> Iterator[dict[str, Any]]:
    for values in zip(*(column.tolist() for column in table.values()), strict=True):
        yield {"kind": kind, **dict(zip(table, values, strict=True))}


def _of_kind(
    kind: str, rows: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    return [(number, row) for number, row in rows if row.get("kind") == kind]
