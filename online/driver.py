"""The driver: adds arriving requests to an engine and runs it until all complete."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from online import step_kernels as k
from online.run_log import LogBuilder, RunLog
from sortedf.errors import OversizeError, SortedfError
from sortedf.step_time import UNIT_STEPS, StepTime
from sortedf.traces.sessions import FIRST_TURN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from online.requests import RequestTable
    from online.step_engine import Engine, StepRecord


class StalledError(SortedfError, RuntimeError):
    """A policy starts no waiting request although none runs and none will arrive."""


def drive(
    engine: Engine,
    *,
    step_time: StepTime = UNIT_STEPS,
    on_step: Callable[[StepRecord, float], None] | None = None,
) -> RunLog:
    """Run every request of an engine's table to completion.

    The clock follows `step_time` for every engine, so that a real engine takes the same
    decisions at the same times as the simulated one. While no request waits or runs,
    the clock jumps to the next arrival.

    A turn of a session arrives when the turn before it has completed, after its think
    time; the table then gets its arrival.

    Parameters
    ----------
    engine : Engine
        Its table holds the requests with their arrivals and sessions.
    step_time : StepTime
        Seconds per step; the papers' unit steps if left out.
    on_step : callable, optional
        Called as `on_step(record, end_s)` after each step, for a live view.

    Raises
    ------
    StalledError
        If the policy never starts the waiting requests.
    """
    table = engine.table
    n = table.num_ids
    arrivals = Arrivals(table)
    log = LogBuilder(n)
    now_s = 0.0
    while arrivals.next_s is not None or engine.num_unfinished:
        for i in arrivals.until(now_s):
            if not _add(engine, i, log):
                arrivals.after(i, now_s)
        next_s = arrivals.next_s
        if not engine.num_unfinished:
            now_s = now_s if next_s is None else max(now_s, next_s)
            continue
        record = engine.step(now_s)
        if record.is_empty:
            now_s = _wake(record, now_s, next_s)
            continue
        end_s = now_s + step_time.seconds(
            record.prefill_tokens, record.num_decoding, record.kv_tokens
        )
        log.add(record, now_s, end_s)
        for i in record.finished:
            arrivals.after(i, end_s)
        now_s = end_s
        if on_step is not None:
            on_step(record, now_s)
    ints = table.ints[:, :n]
    return log.finish(
        ints[k.PREFILL], ints[k.DECODE], table.arrival_s[:n],
        ints[k.PREEMPTIONS], ints[k.RECOMPUTED], ints[k.CACHED],
    )  # fmt: skip


class Arrivals:
    """Requests of a table that have not arrived yet, by (arrival, id).

    Parameters
    ----------
    table : RequestTable
    """

    def __init__(self, table: RequestTable) -> None:
        self._table = table
        self._turns: dict[int, list[int]] = {}
        self._think_s: list[float] = []
        first = list(range(table.num_ids))
        if table.sessions is not None:
            self._think_s = table.sessions.think_s.tolist()
            for i, before in enumerate(table.sessions.previous.tolist()):
                self._turns.setdefault(before, []).append(i)
            first = self._turns.pop(FIRST_TURN, [])
        when = table.arrival_s.tolist()
        self._coming = sorted((when[i], i) for i in first)  # a heap

    @property
    def next_s(self) -> float | None:
        """Time of the next arrival that is certain, if there is one."""
        return self._coming[0][0] if self._coming else None

    def until(self, now_s: float) -> Iterator[int]:
        """Take out the requests that have arrived, in order."""
        while self._coming and self._coming[0][0] <= now_s:
            yield heapq.heappop(self._coming)[1]

    def after(self, i: int, end_s: float) -> None:
        """Let the turns after request `i` arrive, which ended at `end_s`.

        A turn that can never run has ended when it arrived.
        """
        for turn in self._turns.pop(i, ()):
            when = end_s + self._think_s[turn]
            self._table.arrival_s[turn] = when
            heapq.heappush(self._coming, (when, turn))


def _add(engine: Engine, i: int, log: LogBuilder) -> bool:
    """Add a request; return False if it can never run."""
    try:
        engine.add(i)
    except OversizeError as error:
        log.refused[i] = str(error)
        return False
    return True


def _wake(record: StepRecord, now_s: float, next_s: float | None) -> float:
    """Time of the next step after an empty one."""
    times = [t for t in (record.wake_s, next_s) if t is not None and t > now_s]
    if not times:
        raise StalledError(
            f"the policy starts no request at {now_s:g} s although none runs, "
            f"{record.num_waiting} requests wait and none will arrive."
        )
    return min(times)
