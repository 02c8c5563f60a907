"""Lists from the linear relaxation against Sorted-F and SVF."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.data import MIXES
from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import bound, check, solve

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = (1, 2, 3)
SIZES = (200, 2000)

WINDOWS = (0, 20)
"""The papers' placement, and one that may pass over 20 requests."""

LISTS = ("sorted-f", "svf")
RELAXED = ("sorted-lp", "alpha-points", "lp-swap")

LIMIT_S = 20.0
"""Seconds for each list of the relaxation, the climb to good prices included."""


def run(settings: Settings) -> list[Row]:
    """Solve every mix by every list, and check each schedule."""
    journal = Journal("lp_orders", settings)
    rows = []
    for n in (20,) if settings.quick else SIZES:
        for name in MIXES:
            for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
                make = partial(_row, settings.data, name, n, seed, settings.quick)
                rows.append(journal.row(f"{name}, n = {n}, seed {seed}", make))
    return rows


def _row(data: Path, name: str, n: int, seed: int, quick: bool) -> Row:
    instance = MIXES[name](data, n, seed)
    limit_s = 0.5 if quick else LIMIT_S
    row: Row = {"mix": name, "n": n, "seed": seed, "kv_budget": instance.kv_budget}
    row["lower_bound"] = bound(instance, time_limit=limit_s).value
    row["tel"], row["seconds"] = {}, {}
    for method in (*LISTS, *RELAXED):
        for window in WINDOWS:
            began = time.perf_counter()
            limit = limit_s if method in RELAXED else None
            schedule = solve(
                instance, method, backfill=window, time_limit=limit, bound="none"
            ).schedule
            report = check(instance, schedule)
            if not report.feasible or report.tel < row["lower_bound"]:
                raise RuntimeError(f"{method} on {row}: {report}")
            key = f"{method} {window}"
            row["tel"][key] = report.tel
            row["seconds"][key] = time.perf_counter() - began
    return row


def page(rows: list[Row]) -> str:
    """One table for each size and window."""
    parts = [
        "TEL over the proven lower bound, medians of the seeds. The lists of the "
        f"relaxation come from the climb to the dual bound, with {LIMIT_S:g} s in all; "
        "`lp-swap` spends what is left on swaps. Every schedule went through the "
        "checker."
    ]
    for n in dict.fromkeys(row["n"] for row in rows):
        for window in WINDOWS:
            here = [row for row in rows if row["n"] == n]
            parts += [f"## n = {n:,}, backfill {window}", _table(here, window)]
            parts.append(_summary(here, window))
    return "\n\n".join(parts)


def _ratio(rows: list[Row], key: str) -> float:
    ratio: float = median(row["tel"][key] / row["lower_bound"] for row in rows)
    return ratio


def _table(rows: list[Row], window: int) -> str:
    methods = (*LISTS, *RELAXED)
    table = []
    for name in dict.fromkeys(row["mix"] for row in rows):
        here = [row for row in rows if row["mix"] == name]
        ratios = [_ratio(here, f"{method} {window}") for method in methods]
        cells = [f"{x:.4f}" if x > min(ratios) else f"**{x:.4f}**" for x in ratios]
        table.append([name, f"{here[0]['kv_budget']:,}", *cells])
    return markdown_table(["mix", "M", *methods], table)


def _summary(rows: list[Row], window: int) -> str:
    """Say on how many instances each is better than the better list."""
    counts = {method: 0 for method in RELAXED}
    for row in rows:
        listed = min(row["tel"][f"{method} {window}"] for method in LISTS)
        for method in RELAXED:
            counts[method] += row["tel"][f"{method} {window}"] < listed
    listed_text = ", ".join(f"`{name}` on {count}" for name, count in counts.items())
    return f"Better than both lists, of {len(rows)} instances: {listed_text}."


SPEC = Spec(
    "Lists from the relaxation against Sorted-F and SVF", run, page, needs=("data",)
)
