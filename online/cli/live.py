"""A live view of an engine's run: requests done, KV held, expected end."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sortedf.cli.progress import LINE_EVERY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from online.run_log import RunLog
    from online.step_engine import StepRecord

    Watcher = Callable[[StepRecord, float], None]


@contextmanager
def live_view(num_requests: int, num_blocks: int) -> Iterator[LiveView]:
    """Show a run on standard error: bars on a terminal, lines in a log."""
    view = LiveView(num_requests, num_blocks)
    try:
        yield view
    finally:
        view.close()


class LiveView:
    """Counts completed requests and shows the state of a run from time to time.

    Parameters
    ----------
    num_requests : int
        Requests of the run.
    num_blocks : int
        KV blocks of the engine.
    """

    def __init__(self, num_requests: int, num_blocks: int) -> None:
        self.num_requests = num_requests
        self.num_blocks = num_blocks
        self.done = 0
        self.expected_steps = 0
        self._began = time.perf_counter()
        self._show = _Bars(self) if sys.stderr.isatty() else _Lines()
        self._next = self._began + self._show.every_s

    def watch(self, predicted: RunLog) -> Watcher:
        """Set the predicted run; return the function to call after each step."""
        self.expected_steps = predicted.num_steps
        self._began = time.perf_counter()
        self._next = self._began + self._show.every_s
        return self._after

    def _after(self, record: StepRecord, end_s: float) -> None:
        self.done += len(record.finished)
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + self._show.every_s
            self._show.show(self, record, self._left_s(record.step, now))

    def _left_s(self, step: int, now: float) -> float:
        """Remaining seconds, by the mean duration of the steps so far."""
        return (now - self._began) / step * max(self.expected_steps - step, 0)

    def close(self) -> None:
        """Restore the terminal."""
        self._show.close()


class _Lines:
    every_s = LINE_EVERY_S

    def show(self, view: LiveView, record: StepRecord, left_s: float) -> None:
        print(
            f"sortedf: step {record.step:,} of {view.expected_steps:,}: "
            f"{view.done:,} of {view.num_requests:,} requests done, "
            f"{record.num_running:,} running, {record.num_waiting:,} waiting, "
            f"KV {record.used_blocks / view.num_blocks:.0%}, "
            f"{left_s:.0f} s to go",
            file=sys.stderr,
        )

    def close(self) -> None:
        pass


class _Bars:
    every_s = 0.1

    def __init__(self, view: LiveView) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bars = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._requests = self._bars.add_task(
            "requests", total=view.num_requests, text=""
        )
        self._kv = self._bars.add_task("KV", total=view.num_blocks, text="")
        self._steps = self._bars.add_task("steps", total=None, text="")
        self._bars.start()

    def show(self, view: LiveView, record: StepRecord, left_s: float) -> None:
        self._bars.update(
            self._requests,
            completed=view.done,
            text=f"{view.done:,} of {view.num_requests:,} done, "
            f"{record.num_running:,} running, {record.num_waiting:,} waiting",
        )
        self._bars.update(
            self._kv,
            completed=record.used_blocks,
            text=f"{record.used_blocks:,} of {view.num_blocks:,} blocks",
        )
        self._bars.update(
            self._steps,
            completed=record.step,
            total=max(view.expected_steps, record.step),
            text=f"{record.step:,} of {view.expected_steps:,}, {left_s:.0f} s to go",
        )

    def close(self) -> None:
        self._bars.stop()
