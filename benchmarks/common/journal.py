"""Finished rows of a long benchmark, so that a killed run does not repeat them.

Each row is appended to `NAME.unfinished.jsonl` beside the results as soon as it is
measured. The next run takes it from the file, which is deleted when the page is
written. Delete the file to start over, after a change of the code for example.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING

from sortedf.errors import SortedfError
from sortedf.json_values import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.common.registry import Row, Settings


def read_kept(path: Path) -> tuple[Row, list[Row]]:
    """Return the first line of a finished benchmark, about the run, and its rows."""
    first, *rows = (row for _, row in read_lines(path, SortedfError))
    return first, rows


class Journal:
    """Rows by key; each is made once.

    Parameters
    ----------
    name : str
        The benchmark's name.
    settings : Settings
        In quick mode nothing is kept.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self._path = None if settings.quick else unfinished(name, settings.results)
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()  # rows may be made side by side
        if self._path is not None and self._path.is_file():
            self._rows = _read(self._path)
            print(f"   {len(self._rows)} rows are there already", file=sys.stderr)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def row(self, key: str, make: Callable[[], Row]) -> Row:
        """Return the row of this key, from the file or newly made."""
        if key not in self._rows:
            began = time.perf_counter()
            self._rows[key] = make()
            seconds = time.perf_counter() - began
            print(f"   {key}: {seconds:.1f} s", file=sys.stderr, flush=True)
            if self._path is not None:
                with self._lock, self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self._rows[key]]) + "\n")
        return self._rows[key]


def unfinished(name: str, results: Path) -> Path:
    """Path of the rows of an unfinished run."""
    return results / f"{name}.unfinished.jsonl"


def _read(path: Path) -> dict[str, Row]:
    """Read whole lines; the last one may have been cut off by a kill."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        path.write_text("".join(whole), encoding="utf-8")
    return dict(json.loads(line) for line in whole)
