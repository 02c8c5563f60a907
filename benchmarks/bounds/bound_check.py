"""No bound above an optimum, and none above any schedule of a real trace.

Tiny random instances are solved to optimality by trying every start, and some by the
integer program too; every bound must stay at or below. Branch and bound must find the
same optimum and prove it, and every certificate must prove its bound's value. On every
real trace, every bound for such sizes must stay at or below the TEL of every list
method.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import KV_BUDGET, LARGE_KV_BUDGET, MissingDataError, trace
from benchmarks.common.journal import Journal
from benchmarks.common.registry import Spec, markdown_table
from sortedf import BOUNDS, METHODS, Instance, bound, solve
from sortedf.certificate import proven_bound
from sortedf.methods import RULES
from tests import naive

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.common.registry import Row, Settings
    from sortedf.traces import Trace

SEED = 20261129
MILP_EVERY = 5
"""Instances from one that the integer program solves to the next."""

CERTIFIED = ("fluid", "fluid-dff", "dual", "growth")
SEARCH_LIMIT_S = 60.0

SCALING_BOUNDS = ("fluid", "dual", "fluid-dff", "growth")
FIRST = 1000
"""Requests that are taken from the head of each trace."""


CHUNK = 100
"""Tiny instances in a row of the journal; each chunk has a seed of its own."""


def run(settings: Settings) -> list[Row]:
    """Check both; raise at the first violation."""
    journal = Journal("bound_check", settings)
    chunks = settings.pick(100, 1)
    size = settings.pick(CHUNK, 20)
    rows = []
    for label, check_chunk in (("", against_optima), ("search, ", search_and_proofs)):
        for chunk in range(chunks):
            key = f"{label}instances {chunk * size} to {(chunk + 1) * size - 1}"
            rows.append(journal.row(key, partial(check_chunk, chunk, size)))
    try:
        rows += against_traces(journal, settings.data, settings.pick(FIRST, 20))
    except MissingDataError:
        if not settings.quick:
            raise
    return rows


def against_optima(chunk: int, count: int) -> Row:
    """Compare every bound with the optimum of random tiny instances."""
    draw = np.random.default_rng([SEED, chunk])
    names = [
        name
        for name, method in BOUNDS.items()
        if name != "branching" and method.most_requests is None and not method.shared
    ]
    tight, tried = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    by_milp = 0
    began = time.perf_counter()
    for k in range(count):
        instance = tiny_instance(draw)
        where = f"chunk {chunk}, instance {k}"
        best = naive.best_tel(instance)
        if k % MILP_EVERY == 0:
            by_milp += 1
            result = solve(instance, "milp", bound="none")
            if result.tel != best:
                raise RuntimeError(f"{where}: milp {result.tel}, optimum {best}")
        for name in names:
            proof = bound(instance, name)
            if proof.value > best:
                raise RuntimeError(f"{where}: {name} {proof.value}, optimum {best}")
            tried[name] += 1
            tight[name] += proof.value == best
    return {
        "part": "optima",
        "instances": count,
        "seed": [SEED, chunk],
        "by_milp": by_milp,
        "tried": tried,
        "tight": tight,
        "violations": 0,
        "runtime_s": time.perf_counter() - began,
    }


def search_and_proofs(chunk: int, count: int) -> Row:
    """Let branch and bound solve the same instances; check every certificate."""
    draw = np.random.default_rng([SEED, chunk])
    certificates = dict.fromkeys(CERTIFIED, 0)
    for k in range(count):
        instance = tiny_instance(draw)
        where = f"chunk {chunk}, instance {k}"
        best = naive.best_tel(instance)
        found = solve(instance, "branching", bound="none", time_limit=SEARCH_LIMIT_S)
        if (found.tel, found.lower_bound) != (best, best):
            raise RuntimeError(f"{where}: branching {found}, optimum {best}")
        for name in CERTIFIED:
            proof = bound(instance, name)
            if proof.certificate is None:
                raise RuntimeError(f"{where}: {name} has no certificate")
            proven = proven_bound(instance, proof.certificate)
            if not proof.value == proven <= best:
                raise RuntimeError(f"{where}: {name} {proof.value}, proven {proven}")
            certificates[name] += 1
    return {"part": "search", "instances": count, "certificates": certificates}


def tiny_instance(draw: np.random.Generator) -> Instance:
    """Draw one to five requests that do not all fit, half of them with arrivals."""
    n = int(draw.integers(1, 6))
    prefill, decode = draw.integers(1, 7, n), draw.integers(1, 6, n)
    peaks = prefill + decode
    budget = int(draw.integers(peaks.max(), max(peaks.max() + 1, peaks.sum())))
    arrival = draw.integers(0, 6, n) if draw.random() < 0.5 else None
    return Instance(prefill, decode, budget, arrival)


def against_traces(journal: Journal, data: Path, n: int) -> list[Row]:
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
            key = path.name if backlog else f"{path.name}, arrivals"
            make = partial(_trace_row, source, n, backlog)
            rows.append(journal.row(key, make))
    return rows


def _head(source: Trace, n: int, backlog: bool) -> Instance:
    """Take the first requests that can run; arrivals in steps of 30 ms."""
    prefill, decode = source.prefill[:n], source.decode[:n]
    largest = int((prefill + decode).max())
    budget = KV_BUDGET if largest <= KV_BUDGET else max(LARGE_KV_BUDGET, largest)
    steps = np.ceil(source.arrival_s[:n] / 0.03).astype(np.int64)
    return Instance(prefill, decode, budget, None if backlog else steps)


def _trace_row(source: Trace, n: int, backlog: bool) -> Row:
    name, instance = source.name, _head(source, n, backlog)
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
    optima = [row for row in rows if row["part"] == "optima"]
    traces = [row for row in rows if row["part"] == "traces"]
    search = [row for row in rows if row["part"] == "search"]

    def count(kind: str, name: str) -> int:
        return sum(row[kind][name] for row in optima)

    lines = [
        [name, f"{count('tried', name):,}", f"{count('tight', name):,}", "0"]
        for name in optima[0]["tried"]
        if name != "branching"
    ]
    solved = sum(row["instances"] for row in search)
    lines.append(["branching", f"{solved:,}", f"{solved:,}", "0"])
    proofs = sum(sum(row["certificates"].values()) for row in search)
    first = (
        f"{sum(row['instances'] for row in optima):,} random instances of up to 5 "
        "requests, half with arrivals, solved by trying every start; "
        f"{sum(row['by_milp'] for row in optima):,} of them by the integer program "
        "too, with the same optimum each time. Branch and bound found and proved it on "
        f"every one. {proofs:,} certificates of {', '.join(CERTIFIED)} were evaluated "
        "by independent code, and each proved exactly its bound's value."
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


SPEC = Spec("Bounds against optima and against every trace", run, page)
