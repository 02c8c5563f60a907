"""Progress of long work, on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_S = 1.0
"""Seconds that work may take before progress is shown."""

LINE_EVERY_S = 5.0
"""Seconds between lines where standard error is no terminal."""


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function `report(done, total)` that shows a bar, or lines in a log.

    A total of 0 means that nobody knows how much there is.
    """
    show = _Bar(what) if sys.stderr.isatty() else _Lines(what)
    try:
        yield show.report
    finally:
        show.close()


class _Lines:
    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.perf_counter() + QUIET_S

    def report(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if now >= self._next:
            of_total = f" of {total:,}" if total else ""
            print(f"sortedf: {self._what}: {done:,}{of_total}", file=sys.stderr)
            self._next = now + LINE_EVERY_S

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

        self._what = what
        self._show_at = time.perf_counter() + QUIET_S
        self._bar = Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None)
        self._shown = False

    def report(self, done: int, total: int) -> None:
        if not self._shown and time.perf_counter() >= self._show_at:
            self._bar.start()
            self._shown = True
        if self._shown:
            self._bar.update(self._task, completed=done, total=total or None)

    def close(self) -> None:
        if self._shown:
            self._bar.stop()
