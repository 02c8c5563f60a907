"""No bound above an optimum, and none above any schedule of a real trace.

Tiny random instances are solved to optimality twice, by trying every start and by the
integer program; every bound must stay at or below. On every real trace, every bound
that is made for such sizes must stay at or below the TEL of every list method.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.data import KV_BUDGET, LARGE_KV_BUDGET, MissingDataError, trace
from benchmarks.registry import Spec, add, markdown_table
from sortedf import BOUNDS, METHODS, Instance, bound, solve
from sortedf.methods import RULES
from sortedf.registry import load_plugins
from tests import naive

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.registry import Row, Settings
    from sortedf.traces import Trace

SEED = 20261129
MILP_EVERY, BRANCHING_EVERY = 5, 10
"""Instances from one that these slow ones try to the next."""

SCALING_BOUNDS = ("fluid", "dual", "fluid-dff", "growth")
FIRST = 1000
"""Requests that are taken from the head of each trace."""


def run(settings: Settings) -> list[Row]:
    """Check both; raise at the first violation."""
    load_plugins()
    rows = [against_optima(settings.pick(10_000, 20))]
    try:
        rows += against_traces(settings.data, settings.pick(FIRST, 20))
    except MissingDataError:
        if not settings.quick:
            raise
    return rows


def against_optima(count: int) -> Row:
    """Compare every bound with the optimum of random tiny instances."""
    draw = np.random.default_rng(SEED)
    tight = dict.fromkeys(BOUNDS, 0)
    tried = dict.fromkeys(BOUNDS, 0)
    by_milp = 0
    began = time.perf_counter()
    for k in range(count):
        instance = tiny_instance(draw)
        best = naive.best_tel(instance)
        if k % MILP_EVERY == 0:
            by_milp += 1
            result = solve(instance, "milp", bound="none")
            if result.tel != best:
                raise RuntimeError(f"instance {k}: milp {result.tel}, optimum {best}")
        for name in BOUNDS:
            if name == "branching" and k % BRANCHING_EVERY:
                continue
            value = bound(instance, name).value
            if value > best:
                raise RuntimeError(f"instance {k}: {name} {value}, optimum {best}")
            tried[name] += 1
            tight[name] += value == best
    return {
        "part": "optima",
        "instances": count,
        "seed": SEED,
        "by_milp": by_milp,
        "tried": tried,
        "tight": tight,
        "violations": 0,
        "runtime_s": time.perf_counter() - began,
    }


def tiny_instance(draw: np.random.Generator) -> Instance:
    """Draw one to five requests that do not all fit, half of them with arrivals."""
    n = int(draw.integers(1, 6))
    prefill, decode = draw.integers(1, 7, n), draw.integers(1, 6, n)
    peaks = prefill + decode
    budget = int(draw.integers(peaks.max(), max(peaks.max() + 1, peaks.sum())))
    arrival = draw.integers(0, 6, n) if draw.random() < 0.5 else None
    return Instance(prefill, decode, budget, arrival)


def against_traces(data: Path, n: int) -> list[Row]:
    """Compare every bound for large sizes with every list method on each trace."""
    paths = sorted((data / "traces").glob("*.csv.gz"))
    if not paths:
        raise MissingDataError(f"there are no traces in {data / 'traces'}.")
    rows = []
    for path in paths:
        source = trace(data, path.name.removesuffix(".csv.gz"))
        for backlog in (True, False):
            if not backlog and not source.arrival_s[:n].any():
                continue
            rows.append(_trace_row(source.name, _head(source, n, backlog), backlog))
    return rows


def _head(source: Trace, n: int, backlog: bool) -> Instance:
    """Take the first requests that can run; arrivals in steps of 30 ms."""
    prefill, decode = source.prefill[:n], source.decode[:n]
    largest = int((prefill + decode).max())
    budget = KV_BUDGET if largest <= KV_BUDGET else max(LARGE_KV_BUDGET, largest)
    steps = np.ceil(source.arrival_s[:n] / 0.03).astype(np.int64)
    return Instance(prefill, decode, budget, None if backlog else steps)


def _trace_row(name: str, instance: Instance, backlog: bool) -> Row:
    values = {b: bound(instance, b).value for b in SCALING_BOUNDS}
    tel = {
        f"{rule} +{window}": solve(
            instance, rule, backfill=window, bound="none", time_limit=20
        ).tel
        for rule in RULES
        if METHODS[rule].max_requests is None
        for window in (0, 20)
    }
    best = min(tel, key=tel.__getitem__)
    for bound_name, value in values.items():
        if value > tel[best]:
            raise RuntimeError(f"{name}: {bound_name} {value}, {best} {tel[best]}")
    return {
        "part": "traces",
        "trace": name.rpartition("/")[2],
        "n": instance.num_requests,
        "kv_budget": instance.kv_budget,
        "backlog": backlog,
        "bounds": values,
        "tel": tel,
        "best": best,
    }


def page(rows: list[Row]) -> str:
    """Lay out both parts."""
    optima, *traces = rows
    lines = [
        [name, f"{optima['tried'][name]:,}", f"{optima['tight'][name]:,}", "0"]
        for name in optima["tried"]
    ]
    first = (
        f"{optima['instances']:,} random instances of up to 5 requests, half with "
        "arrivals, solved by trying every start; "
        f"{optima['by_milp']:,} of them by the integer program too, with the same "
        "optimum each time."
    )
    second = (
        "The head of every real trace: TEL of the best list method (with its window) "
        "over each bound. None is below 1."
    )
    return "\n\n".join(
        [
            first,
            markdown_table(["bound", "instances", "equal", "above"], lines),
            second,
            _trace_table(traces),
        ]
    )


def _trace_table(rows: list[Row]) -> str:
    lines = [
        [
            row["trace"] + ("" if row["backlog"] else ", arrivals"),
            f"{row['n']:,}",
            f"{row['kv_budget']:,}",
            row["best"],
            *(
                f"{row['tel'][row['best']] / row['bounds'][name]:.4f}"
                for name in SCALING_BOUNDS
            ),
        ]
        for row in rows
    ]
    return markdown_table(["trace", "n", "M", "best list", *SCALING_BOUNDS], lines)


add("bound_check", Spec("Bounds against optima and against every trace", run, page))
