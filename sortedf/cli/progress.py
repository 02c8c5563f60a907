"""Progress of long work, on standard error."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_S = 1.0
"""Seconds before progress is shown."""

LINE_EVERY_S = 5.0
"""Seconds between lines if standard error is no terminal."""


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function `report(done, total)` that shows a bar, or lines in a log.

    A total of 0 means that it is unknown.
    """
    with shown(what) as show:
        yield show.report


@contextmanager
def shown(what: str) -> Iterator[_Lines | _Bar]:
    """Yield an object with `report`, and `note(text)` for messages of a search."""
    show = _Bar(what) if sys.stderr.isatty() else _Lines(what)
    try:
        yield show
    finally:
        show.close()


@contextmanager
def log_shown() -> Iterator[None]:
    """Show log messages about compilation and broken plug-ins."""
    loggers = [logging.getLogger(f"sortedf.{name}") for name in ("jit", "registry")]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("sortedf: %(message)s"))
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Lines:
    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.perf_counter() + QUIET_S

    def report(self, done: int, total: int) -> None:
        of_total = f" of {total:,}" if total else ""
        self.note(f"{self._what}: {done:,}{of_total}")

    def note(self, text: str) -> None:
        now = time.perf_counter()
        if now >= self._next:
            print(f"sortedf: {text}", file=sys.stderr)
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
        if self._is_shown():
            self._bar.update(self._task, completed=done, total=total or None)

    def note(self, text: str) -> None:
        if self._is_shown():
            self._bar.update(self._task, description=text, completed=0, total=None)

    def _is_shown(self) -> bool:
        if not self._shown and time.perf_counter() >= self._show_at:
            self._bar.start()
            self._shown = True
        return self._shown

    def close(self) -> None:
        if self._shown:
            self._bar.stop()
