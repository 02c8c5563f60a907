"""`schedule.json`: start steps in the row order of a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sortedf.arrays import MAX_STEP
from sortedf.atomic import atomic_path
from sortedf.errors import TraceError
from sortedf.json_values import read_json
from sortedf.shown import shown_json

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from sortedf.result import Result


def write_schedule(
    result: Result,
    path: str | PathLike[str],
    *,
    kept: NDArray[np.int64] | None = None,
    num_rows: int | None = None,
) -> None:
    """Write a schedule to a file that `sortedf check` and other programs can read.

    The file holds one JSON object with `kv_budget`, `method`, `backfill` and `start`:
    one start step for each row of the trace, null for a row that was left out.

    Parameters
    ----------
    result : Result
    path : path
        Written atomically.
    kept : int64 array, shape (n,), optional
        For each request its row in the trace, counted from 0; all rows if left out.
    num_rows : int, optional
        Rows of the trace; needed with `kept`.
    """
    start: list[int | None] = list(result.schedule.start.tolist())
    if kept is not None and num_rows is not None:
        rows: list[int | None] = [None] * num_rows
        for row, step in zip(kept.tolist(), start, strict=True):
            rows[row] = step
        start = rows
    content = {
        "kv_budget": result.schedule.instance.kv_budget,
        "method": result.method,
        "backfill": result.backfill,
        "start": start,
    }
    with atomic_path(path) as unfinished:
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_start(path: str | PathLike[str]) -> list[int | None]:
    """Read the start steps of a schedule file, null as None.

    Parameters
    ----------
    path : path
        A JSON object with the key `start`, or only the list.

    Raises
    ------
    TraceError
        If the file cannot be read or is no schedule; the message names the row.
    """
    name = str(path)
    content = read_json(path, TraceError)
    start = content.get("start") if isinstance(content, dict) else content
    if not isinstance(start, list):
        raise TraceError(
            f'{name} must be a JSON object with a list "start", one step for each row '
            "of the trace, or that list alone."
        )
    for row, step in enumerate(start, start=1):
        if step is not None and not _is_step(step):
            raise TraceError(
                f"{name}: start of row {row} is {shown_json(step)} but must be an "
                f"integer from 0 to {MAX_STEP}, or null for a row that was left out."
            )
    return start


def _is_step(value: Any) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return is_int and 0 <= value <= MAX_STEP
