"""How close to a proven bound the schedules of every method are, at frozen instances.

Instances, seeds and time limits never change, so that releases can be compared.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.data import (
    DOCUMENTS,
    KV_BUDGET,
    MIXES,
    MissingDataError,
    single,
    trace,
)
from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import __version__, bound, check, generate, solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from sortedf import Instance

SEEDS = (1, 2, 3)

PROCESSES = 2
"""Cells that are measured side by side, each on a core of its own."""

LIMITS_S = {20: 1.0, 100: 2.0, 500: 5.0, 2000: 10.0, 12_000: 20.0}
"""Seconds for each search, by the number of requests."""

BOUND_LIMIT_S = 10.0
"""Seconds for the bound."""

FEW, SMALLER = 100, 4
"""Up to so many requests, budgets are divided by this: else all would run at once."""

LOOSE = 4
"""A loose budget is so many times the tight one."""

CHOICES: tuple[tuple[str, int | None, int | None], ...] = (
    ("fcfs", 0, None),
    ("lpt", 0, None),
    ("mc-sf", 0, None),
    ("total-size", 0, None),
    ("quantile-greedy", 0, None),
    ("sorted-f", 0, 2000),
    ("svf", 0, None),
    ("sorted-lp", 5, 100),
    ("sorted-f", 20, 2000),
    ("svf", 20, None),
    ("best-list", None, None),
    ("auto", None, None),
)
"""Method, backfill window (None lets the method choose), and the size up to which it is
run: above, it takes minutes, and the cell stays empty.
"""

COLOURS = 10
"""Number of colours in matplotlib's cycle; later lines are dashed."""

RELEASES: tuple[tuple[str, dict[int, float]], ...] = ()
"""Ratios of `auto` in earlier releases, medians by n: add a row with each release."""


def generated(share: float, data: Path, n: int, seed: int) -> Instance:
    """Backlog from the package's own generator; needs no data."""
    trace = generate("mix", n, long_share=share, seed=seed)
    return trace.to_instance(KV_BUDGET)[0]


INSTANCES: dict[str, Callable[[Path, int, int], Instance]] = {
    "generated 80/20": partial(generated, 0.2),
    "generated 50/50": partial(generated, 0.5),
    **MIXES,
    "documents": lambda data, n, seed: single(data, DOCUMENTS, n, seed, KV_BUDGET),
}
GENERATED = ("generated 80/20", "generated 50/50")
"""Instances that need no data."""

LOOSE_TOO = ("generated 80/20", "80/20")
"""Instances that are solved with a loose budget as well."""


def run(settings: Settings) -> list[Row]:
    """Solve everything, and check every schedule; finished cells are kept."""
    journal = Journal("quality", settings)
    context = get_context("spawn")  # threads and forks do not go together
    with (
        ProcessPoolExecutor(PROCESSES, mp_context=context) as processes,
        ThreadPoolExecutor(PROCESSES) as threads,
    ):

        def measure(cell: Cell) -> list[Row]:
            def make() -> Row:
                return {"rows": processes.submit(solve_all, cell, settings).result()}

            rows: list[Row] = journal.row(_key(cell), make)["rows"]
            return rows

        found = list(threads.map(measure, _cells(settings)))
    return [row for rows in found for row in rows]


Cell = tuple[str, int, int, int]
"""Name of the instances, times the budget, n and seed."""


def _key(cell: Cell) -> str:
    name, times, n, seed = cell
    return f"{name}, {times} M, n = {n}, seed {seed}"


def _cells(settings: Settings) -> list[Cell]:
    """List the instances to solve, large ones first: they take longest."""
    sizes = [20] if settings.quick else sorted(LIMITS_S, reverse=True)
    seeds = SEEDS[: settings.pick(len(SEEDS), 1)]
    names = [name for name in INSTANCES if _there(settings, name)]
    return [
        (name, times, n, seed)
        for n in sizes
        for name in names
        for times in ((1, LOOSE) if name in LOOSE_TOO else (1,))
        for seed in seeds
    ]


def _there(settings: Settings, name: str) -> bool:
    """Whether the data of these instances is available; prints a line if not."""
    if name in GENERATED:
        return True
    try:
        trace(settings.data, DOCUMENTS)
    except MissingDataError as error:
        print(f"   {name} is left out: {error}", file=sys.stderr)
        return False
    return True


def solve_all(cell: Cell, settings: Settings) -> list[Row]:
    """Solve an instance by every method, and check every schedule."""
    name, times, n, seed = cell
    instance = INSTANCES[name](settings.data, n, seed)
    budget = times * instance.kv_budget
    if n <= FEW:
        budget = max(budget // SMALLER, int(instance.peak.max()))
    instance = instance.replace(kv_budget=budget)
    limit_s = 0.1 if settings.quick else LIMITS_S[n]
    label: Row = {
        "instances": name if times == 1 else f"{name}, {times} M",
        "n": n,
        "seed": seed,
        "kv_budget": instance.kv_budget,
        "limit_s": limit_s,
    }
    _warm_up()
    proven = bound(instance, time_limit=min(BOUND_LIMIT_S, limit_s)).value
    return [
        {
            **label,
            "lower_bound": proven,
            **_solve(instance, method, window, proven, limit_s),
        }
        for method, window, up_to in CHOICES
        if up_to is None or n <= up_to
    ]


@cache
def _warm_up() -> None:
    """Compile everything once in each process, before a clock runs."""
    instance = generated(0.2, Path(), 8, 0)
    bound(instance, time_limit=0.1)
    for method, window, _ in CHOICES:
        solve(instance, method, backfill=window, time_limit=0.1, bound="none")


def _solve(
    instance: Instance, method: str, window: int | None, proven: int, limit_s: float
) -> Row:
    history: list[tuple[float, float]] = []
    began = time.perf_counter()

    def note(tel: int, _: int | None) -> None:
        history.append((time.perf_counter() - began, tel / proven))

    result = solve(
        instance, method, backfill=window, time_limit=limit_s, bound="none",
        on_better=note,
    )  # fmt: skip
    report = check(instance, result.schedule)
    if not report.feasible or report.tel < proven:
        raise RuntimeError(f"{method} on {instance}: {report}, bound {proven}")
    return {
        "method": f"{method} {window}" if window else method,
        "tel": report.tel,
        "ratio": report.tel / proven,
        "runtime_s": result.runtime_s,
        "history": history,
    }


def page(rows: list[Row]) -> str:
    """One table for each size, and one row for each release."""
    text = (
        "TEL over the proven lower bound, medians of the seeds; 1 is optimal, and part "
        "of the rest is the bound's. Budgets are those of the latency benchmark, up to "
        f"{FEW} requests a quarter of that, or {LOOSE} times as much. Every schedule "
        "went through the checker. How much of a ratio is the bound's and how much the "
        "schedule's, where the optimum is known: see `optima`."
    )
    parts = [text, _releases(rows), "## All instances", _by_size(rows)]
    for n in dict.fromkeys(row["n"] for row in rows):
        here = [row for row in rows if row["n"] == n]
        parts += [f"## n = {n:,}, {here[0]['limit_s']:g} s", _table(here)]
    return "\n\n".join(parts)


def _releases(rows: list[Row]) -> str:
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    now = {n: _ratio([row for row in rows if row["n"] == n], "auto") for n in sizes}
    table = [
        [version, *(f"{ratios[n]:.4f}" if n in ratios else "" for n in sizes)]
        for version, ratios in (*RELEASES, (__version__, now))
    ]
    columns = ["release, `auto`", *(f"n = {n:,}" for n in sizes)]
    return markdown_table(columns, table)


def _by_size(rows: list[Row]) -> str:
    """Each method over all instances; the README shows some of these lines."""
    sizes = sorted({row["n"] for row in rows})
    table = [
        [
            f"`{method}`",
            *(_cell([r for r in rows if r["n"] == n], method) for n in sizes),
        ]
        for method in dict.fromkeys(row["method"] for row in rows)
    ]
    columns = ["TEL over the proven bound", *(f"n = {n:,}" for n in sizes)]
    return markdown_table(columns, table)


def _table(rows: list[Row]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = dict.fromkeys(row["instances"] for row in rows)
    table = []
    for name in names:
        here = [row for row in rows if row["instances"] == name]
        table.append([name, *(_cell(here, method) for method in methods)])
    return markdown_table(["instances", *methods], table)


def _cell(rows: list[Row], method: str) -> str:
    known = any(row["method"] == method for row in rows)
    return f"{_ratio(rows, method):.4f}" if known else ""


def _ratio(rows: list[Row], method: str) -> float:
    ratio: float = median(row["ratio"] for row in rows if row["method"] == method)
    return ratio


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Plot the gap over time at the largest size of the mix, and the gap by size."""
    from sortedf.plotting.canvas import new_figure, tidy

    over_time = new_figure("Certified gap of auto over time, 80/20")
    axes = over_time.subplots()
    sizes = sorted({row["n"] for row in rows})
    mixes = dict.fromkeys(r["instances"] for r in rows if "80/20" in r["instances"])
    for n, line in zip(sizes[-2:], ("--", "-"), strict=False):
        for k, mix in enumerate(mixes):
            own = [r for r in rows if (r["n"], r["instances"]) == (n, mix)]
            for row in [row for row in own if row["method"] == "auto"]:
                seconds = [point[0] for point in row["history"]]
                gaps = [100 * (point[1] - 1) for point in row["history"]]
                label = f"{mix}, n = {n:,}" if row["seed"] == SEEDS[0] else None
                axes.step(seconds, gaps, line, where="post", color=f"C{k}", label=label)
    axes.set(xlabel="seconds", ylabel="gap in %", xscale="log")
    axes.legend()
    tidy(axes)
    by_size = new_figure("Certified gap by number of requests, all instances")
    axes = by_size.subplots()
    for k, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        known = [n for n in sizes if _has(rows, n, method)]
        gaps = [
            100 * (_ratio([row for row in rows if row["n"] == n], method) - 1)
            for n in known
        ]
        line = "-" if k < COLOURS else "--"
        axes.plot(known, gaps, f"o{line}", color=f"C{k % COLOURS}", label=method)
    axes.set(xlabel="requests", ylabel="gap in %", xscale="log", yscale="log")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    tidy(axes)
    return {"time": over_time, "size": by_size}


def _has(rows: list[Row], n: int, method: str) -> bool:
    return any((row["n"], row["method"]) == (n, method) for row in rows)


SPEC = Spec("Schedules against the proven bound", run, page, figures)
