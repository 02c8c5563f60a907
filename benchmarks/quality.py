"""How close to a proven bound the schedules of every method are, at frozen instances.

Instances, seeds and time limits never change, so that releases can be compared.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.data import DOCUMENTS, KV_BUDGET, MIXES, MissingDataError, single
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from sortedf import __version__, bound, check, generate, solve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure

    from sortedf import Instance

SEEDS = (1, 2, 3)

LIMITS_S = {20: 1.0, 100: 2.0, 500: 5.0, 2000: 10.0, 12_000: 20.0}
"""Seconds for each search, by the number of requests."""

BOUND_LIMIT_S = 10.0
"""Seconds for the bound."""

LOOSE = 4
"""A loose budget is so many times the tight one."""

METHODS: tuple[tuple[str, int | None], ...] = (
    ("fcfs", 0),
    ("mc-sf", 0),
    ("sorted-f", 0),
    ("svf", 20),
    ("best-list", None),
    ("auto", None),
)
"""Method and backfill window; None lets the method choose."""

SORTED_F_UP_TO = 2000
"""Above, exact groups take minutes, and the row is left out."""

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
LOOSE_TOO = ("generated 80/20", "80/20")
"""Instances that are solved with a loose budget as well."""


def run(settings: Settings) -> list[Row]:
    """Solve everything, and check every schedule."""
    rows = []
    for name, make in INSTANCES.items():
        for n in (20,) if settings.quick else LIMITS_S:
            for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
                try:
                    tight = make(settings.data, n, seed)
                except MissingDataError:
                    continue
                label = {"instances": name, "n": n, "seed": seed}
                limit_s = 0.1 if settings.quick else LIMITS_S[n]
                rows += _solve_all(label, tight, limit_s)
                if name in LOOSE_TOO:
                    label["instances"] = f"{name}, {LOOSE} M"
                    loose = tight.replace(kv_budget=LOOSE * tight.kv_budget)
                    rows += _solve_all(label, loose, limit_s)
    return rows


def _solve_all(label: Row, instance: Instance, limit_s: float) -> list[Row]:
    proven = bound(instance, time_limit=min(BOUND_LIMIT_S, limit_s)).value
    rows = []
    for method, backfill in METHODS:
        if method == "sorted-f" and instance.num_requests > SORTED_F_UP_TO:
            continue
        history: list[tuple[float, float]] = []
        began = time.perf_counter()

        def note(
            tel: int,
            _: int | None,
            began: float = began,
            history: list[tuple[float, float]] = history,
        ) -> None:
            history.append((time.perf_counter() - began, tel / proven))

        result = solve(
            instance, method, backfill=backfill, time_limit=limit_s, bound="none",
            on_better=note,
        )  # fmt: skip
        report = check(instance, result.schedule)
        if not report.feasible or report.tel < proven:
            raise RuntimeError(f"{method} on {label}: {report}, bound {proven}")
        rows.append(
            {
                **label,
                "kv_budget": instance.kv_budget,
                "method": method if not backfill else f"{method} {backfill}",
                "limit_s": limit_s,
                "tel": report.tel,
                "lower_bound": proven,
                "ratio": report.tel / proven,
                "runtime_s": result.runtime_s,
                "history": history,
            }
        )
    return rows


def page(rows: list[Row]) -> str:
    """One table for each size, and one row for each release."""
    text = (
        "TEL over the proven lower bound, medians of the seeds; 1 is optimal, and part "
        "of the rest is the bound's. Budgets are those of the latency benchmark, or "
        f"{LOOSE} times as much. Every schedule went through the checker."
    )
    parts = [text, _releases(rows)]
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


def _table(rows: list[Row]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = dict.fromkeys(row["instances"] for row in rows)
    table = []
    for name in names:
        here = [row for row in rows if row["instances"] == name]
        table.append([name, *(f"{_ratio(here, method):.4f}" for method in methods)])
    return markdown_table(["instances", *methods], table)


def _ratio(rows: list[Row], method: str) -> float:
    ratio: float = median(row["ratio"] for row in rows if row["method"] == method)
    return ratio


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Plot the gap over time at the largest size of the mix, and the gap by size."""
    from sortedf.plotting.canvas import new_figure, tidy

    over_time = new_figure("Certified gap of auto over time, 80/20")
    axes = over_time.subplots()
    sizes = sorted({row["n"] for row in rows})
    for n in sizes[-2:]:
        for row in rows:
            if (row["n"], row["method"]) == (n, "auto") and "80/20" in row["instances"]:
                seconds = [point[0] for point in row["history"]]
                gaps = [100 * (point[1] - 1) for point in row["history"]]
                label = f"{row['instances']}, n = {n:,}" if row["seed"] == 1 else None
                axes.step(seconds, gaps, where="post", label=label)
    axes.set(xlabel="seconds", ylabel="gap in %", xscale="log")
    axes.legend()
    tidy(axes)
    by_size = new_figure("Certified gap by number of requests, all instances")
    axes = by_size.subplots()
    for method in dict.fromkeys(row["method"] for row in rows):
        known = [n for n in sizes if _has(rows, n, method)]
        gaps = [
            100 * (_ratio([row for row in rows if row["n"] == n], method) - 1)
            for n in known
        ]
        axes.plot(known, gaps, marker="o", label=method)
    axes.set(xlabel="requests", ylabel="gap in %", xscale="log", yscale="symlog")
    axes.legend()
    tidy(axes)
    return {"time": over_time, "size": by_size}


def _has(rows: list[Row], n: int, method: str) -> bool:
    return any((row["n"], row["method"]) == (n, method) for row in rows)


add("quality", Spec("Schedules against the proven bound", run, page, figures))
