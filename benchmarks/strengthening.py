"""Bounds above the linear relaxation: what each adds, small and large."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from benchmarks.data import MissingDataError, single
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from sortedf import Instance, bound, generate, solve

BOUND_NAMES = ("fluid", "fluid-dff", "dual", "growth", "branching")

SMALL = (
    (12, 4200, 0.2),
    (20, 8000, 0.2),
    (24, 16492, 0.2),
    (16, 8192, 0.5),
    (12, 16492, 1.0),
)
"""Requests, budget, share of documents."""

LARGE = (
    (16492, 0.2),
    (16492, 0.95),
    (16492, 1.0),
    (8192, 0.95),
    (8192, 1.0),
    (4200, 1.0),
)
"""Budget and share of documents, at n = 2000."""

TRANSLATIONS = "bwb_translation_4k"
"""Real documents whose answers are as long as their prompts."""

LONGEST_ANSWER = 600
"""Tokens at which answers are cut in small instances, as in a capped service."""

SMALL_LIMIT_S = 30.0
LARGE_LIMIT_S = 10.0
"""Seconds that iterative bounds get."""

METHODS = (("svf", (0, 2, 5, 20)), ("sorted-f", (0, 5)), ("lp-swap", (0, 2)))
"""Methods and their windows whose best schedule the bounds are held against."""


def run(settings: Settings) -> list[Row]:
    """Evaluate every bound, and check that none is above a schedule."""
    rows = []
    for n, budget, share in SMALL[: settings.pick(len(SMALL), 1)]:
        for seed in range(settings.pick(3, 1)):
            trace = generate("mix", n, long_share=share, seed=seed)
            decode = np.minimum(trace.decode, LONGEST_ANSWER)
            instance = Instance(trace.prefill, decode, budget)
            label = {"size": "small", "share": share, "seed": seed}
            limit_s = SMALL_LIMIT_S if not settings.quick else 1.0
            rows.append({**label, **_row(instance, limit_s)})
    n = settings.pick(2000, 60)
    for budget, share in LARGE[: settings.pick(len(LARGE), 1)]:
        trace = generate("mix", n, long_share=share, seed=1)
        instance, _ = trace.to_instance(budget)
        label = {"size": "large", "share": share, "seed": 1}
        rows.append({**label, **_row(instance, LARGE_LIMIT_S)})
    return rows + _translations(settings, n)


def _translations(settings: Settings, n: int) -> list[Row]:
    """Measure real translations of books, if the traces are there."""
    try:
        instance = single(settings.data, TRANSLATIONS, n, 1, 16492)
    except MissingDataError:
        return []
    label = {"size": "large", "share": TRANSLATIONS, "seed": 1}
    return [{**label, **_row(instance, LARGE_LIMIT_S)}]


def _row(instance: Instance, limit_s: float) -> Row:
    small = instance.num_requests <= 40
    row: Row = {"n": instance.num_requests, "kv_budget": instance.kv_budget}
    for name in BOUND_NAMES if small else BOUND_NAMES[:-1]:
        began = time.perf_counter()
        row[name] = bound(instance, name, time_limit=limit_s).value
        row[f"{name}_s"] = time.perf_counter() - began
    row["tel"] = min(
        solve(instance, name, backfill=window, bound="none").tel
        for name, windows in METHODS
        if small or name != "lp-swap"
        for window in windows
    )
    if max(row[name] for name in BOUND_NAMES if name in row) > row["tel"]:
        raise RuntimeError(f"a bound is above a schedule: {row}")
    return row


def page(rows: list[Row]) -> str:
    """One table for small instances, one for large ones."""
    small = [row for row in rows if row["size"] == "small"]
    large = [row for row in rows if row["size"] == "large"]
    return "\n\n".join([_small_table(small), _large_table(large)])


def _small_table(rows: list[Row]) -> str:
    table = []
    for key in dict.fromkeys((r["n"], r["kv_budget"], r["share"]) for r in rows):
        here = [r for r in rows if (r["n"], r["kv_budget"], r["share"]) == key]
        n, budget, share = key
        line = [f"{share:.0%} documents", str(n), f"{budget:,}"]
        table.append(line + _closed_cells([r for r in here if r["dual"] < r["tel"]]))
    columns = ["mix", "n", "M", "instances with a gap", "best schedule over dual"]
    columns += ["fluid-dff", "growth", "branching", "least, branching"]
    columns += ["proven optimal by branching"]
    return "\n\n".join(
        [
            "Small instances: share of the gap between the dual bound and the best "
            "schedule known that each bound closes, medians; answers cut at "
            f"{LONGEST_ANSWER} tokens, {SMALL_LIMIT_S:g} s. Instances where the dual "
            "bound meets a schedule are left out. The optimum may be below the best "
            "schedule known; then more of the gap to it is closed.",
            markdown_table(columns, table),
        ]
    )


def _closed_cells(rows: list[Row]) -> list[str]:
    if not rows:
        return ["0", *["-"] * 6]
    closed = {
        name: [max(r[name] - r["dual"], 0) / (r["tel"] - r["dual"]) for r in rows]
        for name in ("fluid-dff", "growth", "branching")
    }
    cells = [str(len(rows)), f"{median(r['tel'] / r['dual'] - 1 for r in rows):.1%}"]
    cells += [f"{median(shares):.0%}" for shares in closed.values()]
    cells.append(f"{min(closed['branching']):.0%}")
    return [*cells, str(sum(r["branching"] == r["tel"] for r in rows))]


def _large_table(rows: list[Row]) -> str:
    table = []
    for row in rows:
        share = row["share"]
        mix = share if isinstance(share, str) else f"{share:.0%} documents"
        line = [mix, f"{row['n']:,}", f"{row['kv_budget']:,}", f"{row['fluid']:,}"]
        for name in ("dual", "fluid-dff", "growth"):
            line.append(f"{row[name] / row['fluid'] - 1:+.2%}")
        best = max(row[name] for name in BOUND_NAMES if name in row)
        line.append(f"{row['tel'] / best:.4f}")
        line += [f"{row['fluid-dff_s']:.1f}", f"{row['growth_s']:.1f}"]
        table.append(line)
    columns = ["mix", "n", "M", "fluid", "dual", "fluid-dff", "growth"]
    columns += ["best schedule / best bound", "fluid-dff s", "growth s"]
    return "\n\n".join(
        [
            "Large instances: the bounds over the fluid bound, with "
            f"{LARGE_LIMIT_S:g} s for the ascent.",
            markdown_table(columns, table),
        ]
    )


add("strengthening", Spec("Bounds above the linear relaxation", run, page))
