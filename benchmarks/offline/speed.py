"""Time and memory of placement, group selection and the command line."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import Instance, check, place, solve
from sortedf.generator import generate
from sortedf.traces import write_trace
from tests import naive

if TYPE_CHECKING:
    from collections.abc import Callable

KV_BUDGET = 16492
RUNS = 5


def run(settings: Settings) -> list[Row]:
    """Time kernels warm, and processes whole; medians over several runs."""
    return [
        *_placement(settings),
        *_orders(settings),
        _against_twin(),
        *_processes(settings),
    ]


def _backlog(n: int) -> Instance:
    return generate("mix", n, seed=1).to_instance(KV_BUDGET)[0]


def _timed(what: str, limit_s: float, action: Callable[[], object]) -> Row:
    action()  # compile, fill caches
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return {"what": what, "seconds": median(times), "all_s": times, "limit": limit_s}


def _placement(settings: Settings) -> list[Row]:
    n = settings.pick(100_000, 500)
    instance = _backlog(n)
    order = np.argsort(instance.prefill + instance.decode, kind="stable")
    if not check(instance, place(instance, order, backfill=20)).feasible:
        raise RuntimeError("placement is infeasible")
    return [
        _timed(
            f"placement of {n:,} requests, backfill {window}",
            limit_s,
            partial(place, instance, order, backfill=window),
        )
        for window, limit_s in ((0, 2.0), (20, 10.0))
    ]


def _orders(settings: Settings) -> list[Row]:
    cases = [
        ("exact-dp", settings.pick(100, 30), 5.0),
        ("local-swap", settings.pick(500, 60), 3.0),
        ("exact", settings.pick(2000, 200), 1.0),
        ("exact", settings.pick(20_000, 300), 30.0),
        ("sorted-f-co-start", settings.pick(2000, 200), 2.0),
        ("quantile-greedy", settings.pick(100_000, 1000), 10.0),
    ]
    return [
        _timed(
            f"Sorted-F order and placement, {name}, n = {n:,}",
            limit_s,
            partial(solve, _backlog(n), name, bound="none"),
        )
        for name, n, limit_s in cases
    ]


def _against_twin() -> Row:
    """Compare with a loop over steps, as a simulator would place."""
    s, o = np.random.default_rng(0).integers(1, 40, (2, 40))
    instance = Instance(s, o, 200)
    order = list(range(40))
    fast = _timed("", 0, lambda: place(instance, order))["seconds"]
    began = time.perf_counter()
    slow_start = naive.place(instance, order)
    slow = time.perf_counter() - began
    if slow_start != place(instance, order).start.tolist():
        raise RuntimeError("placement differs from its twin")
    what = "step-by-step loop in Python over placement, n = 40 (a ratio)"
    return {"what": what, "seconds": slow / fast, "all_s": [slow, fast], "limit": None}


def _processes(settings: Settings) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.csv"
        many = Path(folder) / "many.csv"
        num_many = settings.pick(1_000_000, 2000)
        write_trace(generate("mix", 2000, seed=1), few)
        write_trace(generate("mix", num_many, seed=1), many)
        budget = ["--kv-budget", str(KV_BUDGET), "--json"]
        return [
            _process("python -c 'import sortedf'", 0.6, ["-c", "import sortedf"]),
            _process(
                "sortedf solve, n = 2,000, whole process",
                3.0,
                ["-m", "sortedf", "solve", str(few), *budget],
            ),
            _memory(
                f"sortedf solve --method svf, n = {num_many:,}",
                ["-m", "sortedf", "solve", str(many), *budget, "--method", "svf"],
            ),
        ]


def _process(what: str, limit_s: float, arguments: list[str]) -> Row:
    command = [sys.executable, *arguments]
    return _timed(
        what,
        limit_s,
        lambda: subprocess.run(command, check=True, capture_output=True),
    )


def _memory(what: str, arguments: list[str]) -> Row:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    # The largest child so far; the others are far smaller.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return {"what": what, "seconds": seconds, "all_s": [], "limit": None, "gib": peak}


def page(rows: list[Row]) -> str:
    """Seconds against the limits that we set ourselves."""
    table = []
    for row in rows:
        limit = "" if row["limit"] is None else f"{row['limit']:g}"
        memory = f"{row['gib']:.2f}" if "gib" in row else ""
        table.append([row["what"], f"{row['seconds']:.3f}", limit, memory])
    text = (
        f"Medians of {RUNS} runs after a warm-up, on one core of a shared machine; "
        "limits are ours. Backlogs are generated mixes with 20 % long documents, "
        f"M = {KV_BUDGET:,}. The line of a million requests is one run of the whole "
        "process, reading the file included."
    )
    columns = ["what", "seconds", "limit", "peak GiB"]
    return "\n\n".join([text, markdown_table(columns, table)])


SPEC = Spec("Speed and memory", run, page)
