"""The driver: adds arriving requests to an engine and runs it until all complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online import step_kernels as k
from online.run_log import LogBuilder, RunLog
from sortedf.errors import OversizeError, SortedfError
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable

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

    Parameters
    ----------
    engine : Engine
        Its table holds the requests with their arrivals.
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
    arrival_s = table.arrival_s[:n]
    coming = np.argsort(arrival_s, kind="stable").tolist()
    when = arrival_s[coming].tolist()
    log = LogBuilder(n)
    now_s, arrived = 0.0, 0
    while arrived < n or engine.num_unfinished:
        while arrived < n and when[arrived] <= now_s:
            _add(engine, coming[arrived], log)
            arrived += 1
        if not engine.num_unfinished:
            if arrived < n:
                now_s = when[arrived]
            continue
        record = engine.step(now_s)
        next_s = when[arrived] if arrived < n else None
        if record.is_empty:
            now_s = _wake(record, now_s, next_s)
            continue
        end_s = now_s + step_time.seconds(
            record.prefill_tokens, record.num_decoding, record.kv_tokens
        )
        log.add(record, now_s, end_s)
        now_s = end_s
        if on_step is not None:
            on_step(record, now_s)
    ints = table.ints[:, :n]
    return log.finish(
        ints[k.PREFILL], ints[k.DECODE], arrival_s,
        ints[k.PREEMPTIONS], ints[k.RECOMPUTED], ints[k.CACHED],
    )  # fmt: skip


def _add(engine: Engine, i: int, log: LogBuilder) -> None:
    try:
        engine.add(i)
    except OversizeError as error:
        log.refused[i] = str(error)


def _wake(record: StepRecord, now_s: float, next_s: float | None) -> float:
    """Time of the next step after an empty one."""
    times = [t for t in (record.wake_s, next_s) if t is not None and t > now_s]
    if not times:
        raise StalledError(
            f"the policy starts no request at {now_s:g} s although none runs, "
            f"{record.num_waiting} requests wait and none will arrive."
        )
    return min(times)
