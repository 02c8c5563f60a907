"""Exact solvers and `auto` in equal time: CP-SAT and the integer program by HiGHS."""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cp_sat import solve_cp_sat
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from sortedf import Instance, bound, check, generate, solve
from sortedf.errors import SortedfError

if TYPE_CHECKING:
    from sortedf import Schedule

SEEDS = (1, 2, 3)

SIZES = ((20, 4200), (50, 8192), (100, 16_492))
"""Requests and budget."""

LONGEST_ANSWER = 600
"""Tokens at which answers are cut, as in a capped service."""

LIMIT_S = 10.0
"""Seconds for each solver, on one thread."""


def run(settings: Settings) -> list[Row]:
    """Solve generated mixes by each; every schedule is checked."""
    rows = []
    for n, budget in SIZES[: settings.pick(len(SIZES), 1)]:
        for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
            trace = generate("mix", n, long_share=0.2, seed=seed)
            decode = np.minimum(trace.decode, LONGEST_ANSWER)
            instance = Instance(trace.prefill, decode, budget)
            label = {"n": n, "kv_budget": budget, "seed": seed}
            rows += _race(label, instance, LIMIT_S if not settings.quick else 1.0)
    return rows


def _race(label: Row, instance: Instance, limit_s: float) -> list[Row]:
    proven = bound(instance, "dual", time_limit=limit_s).value
    horizon = solve(instance, "best-list", bound="none").tel
    rows = []
    for name in ("auto", "milp", "cp-sat"):
        began = time.perf_counter()
        try:
            schedule, own_bound = _solve(name, instance, horizon, limit_s)
        except ImportError:
            print(
                "   cp-sat is left out: pip install 'sortedf[bench]'", file=sys.stderr
            )
            continue
        row = {**label, "solver": name, "limit_s": limit_s, "tel": None, "ratio": None}
        row |= {"runtime_s": time.perf_counter() - began, "own_bound": own_bound}
        row |= {"lower_bound": proven}
        if schedule is not None:
            report = check(instance, schedule)
            if not report.feasible or report.tel < proven:
                raise RuntimeError(f"{name} on {label}: {report}, bound {proven}")
            row |= {"tel": report.tel, "ratio": report.tel / proven}
        rows.append(row)
    return rows


def _solve(
    name: str, instance: Instance, horizon: int, limit_s: float
) -> tuple[Schedule | None, int | None]:
    if name == "cp-sat":
        # Nobody completes later than TEL of a schedule that is no worse.
        return solve_cp_sat(instance, horizon, limit_s)
    try:
        result = solve(instance, name, time_limit=limit_s, bound="none")
    except SortedfError:  # the program is too large for it
        return None, None
    return result.schedule, result.lower_bound


def page(rows: list[Row]) -> str:
    """Ratios and how often a schedule was found, medians over the seeds."""
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    table = []
    for n in dict.fromkeys(row["n"] for row in rows):
        line = [f"{n:,}"]
        for solver in solvers:
            here = [r for r in rows if (r["n"], r["solver"]) == (n, solver)]
            found = [row["ratio"] for row in here if row["ratio"] is not None]
            if not found:
                line.append("none found")
                continue
            some = "" if len(found) == len(here) else f" ({len(found)} of {len(here)})"
            line.append(f"{median(found):.4f}{some}")
        table.append(line)
    text = (
        "TEL over the dual bound, medians of the seeds; generated mixes with 20 % "
        f"documents, answers cut at {LONGEST_ANSWER} tokens, {rows[0]['limit_s']:g} s "
        "and one thread for each. `milp` begins with the best list, `cp-sat` with "
        "nothing. Every schedule went through the checker."
    )
    return "\n\n".join([text, markdown_table(["n", *solvers], table)])


add("exact_rivals", Spec("Exact solvers in equal time", run, page))
