"""Exact solvers and `auto` in equal time: CP-SAT and an integer program by HiGHS."""

from __future__ import annotations

import sys
import time
from functools import cache, partial
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.offline.parts.coarse_milp import SLOTS, solve_coarse_milp
from benchmarks.offline.parts.cp_sat import solve_cp_sat
from sortedf import Instance, bound, check, generate, solve

if TYPE_CHECKING:
    from sortedf import Schedule

SEEDS = (1, 2, 3)

BOUND_S = 5.0
"""Seconds for the bound with which all are compared."""

SIZES = ((20, 4200), (35, 4200), (50, 8192), (100, 16_492))
"""Requests and budget."""

LIMITS_S = (2.0, 10.0)
"""Seconds for each solver, on one thread."""

SOLVERS = ("auto", "coarse milp", "cp-sat")

LONGEST_ANSWER = 600
"""Tokens at which answers are cut, as in a capped service."""


def run(settings: Settings) -> list[Row]:
    """Solve generated mixes by each; every schedule is checked."""
    journal = Journal("exact_rivals", settings)
    has_cp_sat = find_spec("ortools") is not None
    if not has_cp_sat:
        print("   cp-sat is left out: pip install 'sortedf[bench]'", file=sys.stderr)
    solvers = SOLVERS if has_cp_sat else SOLVERS[:-1]
    rows = []
    for n, budget in SIZES[: settings.pick(len(SIZES), 1)]:
        for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
            for limit_s in (0.5,) if settings.quick else LIMITS_S:
                for solver in solvers:
                    key = f"n = {n}, seed {seed}, {solver}, {limit_s:g} s"
                    make = partial(_row, n, budget, seed, solver, limit_s)
                    rows.append(journal.row(key, make))
    return rows


@cache
def _instance(n: int, budget: int, seed: int) -> tuple[Instance, int]:
    """Draw an instance and bound it, once for all solvers."""
    trace = generate("mix", n, long_share=0.2, seed=seed)
    decode = np.minimum(trace.decode, LONGEST_ANSWER)
    instance = Instance(trace.prefill, decode, budget)
    return instance, bound(instance, "dual", time_limit=BOUND_S).value


def _row(n: int, budget: int, seed: int, solver: str, limit_s: float) -> Row:
    instance, proven = _instance(n, budget, seed)
    began = time.perf_counter()
    schedule, own_bound = _solve(solver, instance, limit_s)
    row: Row = {"n": n, "kv_budget": budget, "seed": seed, "solver": solver}
    row |= {"limit_s": limit_s, "runtime_s": time.perf_counter() - began}
    row |= {"lower_bound": proven, "own_bound": own_bound, "tel": None, "ratio": None}
    if schedule is not None:
        report = check(instance, schedule)
        if not report.feasible or report.tel < proven:
            raise RuntimeError(f"{row}: {report}, bound {proven}")
        row |= {"tel": report.tel, "ratio": report.tel / proven}
    return row


def _solve(
    name: str, instance: Instance, limit_s: float
) -> tuple[Schedule | None, int | None]:
    if name == "cp-sat":
        known = solve(instance, "best-list", bound="none").schedule
        return solve_cp_sat(instance, known, limit_s)
    if name == "coarse milp":
        return solve_coarse_milp(instance, limit_s), None
    result = solve(instance, name, time_limit=limit_s, bound="none")
    return result.schedule, result.lower_bound


def page(rows: list[Row]) -> str:
    """Ratios and how often a schedule was found, medians over the seeds."""
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    table = []
    for n, limit_s in dict.fromkeys((row["n"], row["limit_s"]) for row in rows):
        here = [row for row in rows if (row["n"], row["limit_s"]) == (n, limit_s)]
        cells = [_cell([r for r in here if r["solver"] == name]) for name in solvers]
        table.append([f"{n:,}, {limit_s:g} s", *cells, _worse(here)])
    text = (
        "TEL over the dual bound, medians of the seeds; generated mixes with 20 % "
        f"documents, answers cut at {LONGEST_ANSWER} tokens, one thread for each. "
        "The integer program of single steps has too many entries at these sizes: "
        f"HiGHS gets one of some {SLOTS} slots of time, and its order is placed step "
        "by step; `cp-sat` has the steps, and the best list as a hint. The last column "
        "counts the seeds for which a rival's schedule is better than that of `auto`. "
        "Every schedule went through the checker."
    )
    columns = ["n, limit", *solvers, "auto is worse"]
    return "\n\n".join([text, markdown_table(columns, table)])


def _cell(rows: list[Row]) -> str:
    found = [row["ratio"] for row in rows if row["ratio"] is not None]
    if not found:
        return "none found"
    some = "" if len(found) == len(rows) else f" ({len(found)} of {len(rows)})"
    return f"{median(found):.4f}{some}"


def _worse(rows: list[Row]) -> str:
    """Count the seeds for which another solver has the best schedule alone."""
    seeds = dict.fromkeys(row["seed"] for row in rows)
    worse = 0
    for seed in seeds:
        here = {row["solver"]: row["tel"] for row in rows if row["seed"] == seed}
        rivals = [here[name] for name in here if name != "auto"]
        worse += any(tel is not None and tel < here["auto"] for tel in rivals)
    return f"{worse} of {len(seeds)}"


SPEC = Spec("Exact solvers in equal time", run, page)
