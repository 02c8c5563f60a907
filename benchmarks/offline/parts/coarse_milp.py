"""The integer program on a coarse grid of time, the usual remedy for its size.

Time is cut into slots of `q` steps, and requests start at the beginning of a slot. In
each slot a request counts with the most KV that it holds in it, so that every solution
is a schedule. Its order is then placed step by step, which takes the idle time out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from sortedf import Schedule, place, solve

if TYPE_CHECKING:
    from sortedf import Instance

SLOTS = 100
"""Slots that the makespan of a known schedule is cut into."""

SLACK = 1.3
"""Horizon over the known makespan; rounding up to slots takes memory and so time."""

WINDOWS = (0, 2)
"""Backfill windows with which a solution's order is placed."""


def solve_coarse_milp(instance: Instance, limit_s: float) -> Schedule | None:
    """Return HiGHS's best schedule within the time, or None."""
    began = time.perf_counter()
    known = solve(instance, "best-list", bound="none").schedule
    step = max(1, -(-known.makespan // SLOTS))
    num_slots = int(np.ceil(SLACK * known.makespan / step))
    request, slot, held = _columns(instance, step, num_slots)
    count = len(request)
    memory = LinearConstraint(held, -np.inf, instance.usable_kv)
    ones = (np.ones(count), (request, np.arange(count)))
    once = csr_array(ones, shape=(instance.num_requests, count))
    found = milp(
        step * slot + instance.decode[request],
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
        constraints=[memory, LinearConstraint(once, 1, 1)],
        options={"time_limit": max(limit_s - (time.perf_counter() - began), 0.1)},
    )
    if found.x is None:
        return None
    chosen = found.x > 0.5
    start = np.zeros(instance.num_requests, dtype=np.int64)
    start[request[chosen]] = step * slot[chosen]
    order = np.argsort(start, kind="stable")
    placed = [place(instance, order, backfill=window) for window in WINDOWS]
    return min([Schedule(instance, start), *placed], key=lambda schedule: schedule.tel)


def _columns(
    instance: Instance, step: int, num_slots: int
) -> tuple[np.ndarray, np.ndarray, csr_array]:
    """Request and first slot of each column, and what it holds in each slot."""
    requests, slots, rows, columns, values = [], [], [], [], []
    count = 0
    for i, (s, o) in enumerate(zip(instance.prefill, instance.decode, strict=True)):
        length = -(-int(o) // step)
        most = s + np.minimum(o, step * np.arange(1, length + 1))
        starts = np.arange(num_slots - length + 1)
        own = count + np.arange(len(starts))
        requests.append(np.full(len(starts), i))
        slots.append(starts)
        rows.append((starts[:, None] + np.arange(length)).ravel())
        columns.append(np.repeat(own, length))
        values.append(np.tile(most, len(starts)))
        count += len(starts)
    entries = (np.concatenate(rows), np.concatenate(columns))
    held = csr_array((np.concatenate(values), entries), shape=(num_slots, count))
    return np.concatenate(requests), np.concatenate(slots), held
