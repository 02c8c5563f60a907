"""The dual bound against the linear relaxation, and how it grows with n."""

from __future__ import annotations

import resource
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import mix
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from lp.highs import SolverStatus
from lp.relaxation import solve_relaxation
from sortedf import Instance, bound, solve

if TYPE_CHECKING:
    from pathlib import Path

SIZES = (20, 40, 80, 120)
BUDGETS = (12_000, 16_492, 24_000, 32_000)
SEEDS = (1, 2)
LARGE = ((2000, 2.0), (12_000, 18.0), (100_000, 120.0))
"""Number of requests, and seconds for the dual bound."""

LP_LIMIT_S = 10.0
"""Seconds for column generation; only instances that it solves are compared."""

HIGHS_LIMIT_S = 60.0
"""Seconds for HiGHS on the whole matrix."""


def run(settings: Settings) -> list[Row]:
    """Solve the relaxation and climb, on the same instances in one run."""
    rows = [_against_lp(instance, label) for instance, label in _small(settings)]
    if not settings.quick:
        rows.append(_against_whole_matrix(settings.data))
    sizes = ((60, 1.0),) if settings.quick else LARGE
    rows += [_large(settings.data, n, limit_s) for n, limit_s in sizes]
    return rows


def _small(settings: Settings) -> list[tuple[Instance, Row]]:
    """Draw mixes with and without arrivals, at several budgets."""
    cases = []
    for n in SIZES[: settings.pick(4, 1)]:
        for budget in BUDGETS[: settings.pick(4, 1)]:
            for seed in SEEDS:
                backlog = mix(settings.data, n, 0.2, seed, budget)
                span = solve(backlog, bound="none").schedule.makespan
                rng = np.random.default_rng(seed)
                arrival = np.sort(rng.integers(0, max(span // 2, 1), n))
                for arrivals in (False, True):
                    instance = backlog
                    if arrivals:
                        instance = backlog.replace(arrival=arrival)
                    label = {"n": n, "kv_budget": budget, "seed": seed}
                    cases.append((instance, {**label, "arrivals": arrivals}))
    return cases


def _against_lp(instance: Instance, label: Row) -> Row:
    relaxation = solve_relaxation(instance, time_limit_s=LP_LIMIT_S)
    dual = bound(instance, "dual")
    tel = solve(instance, bound="none").tel
    solved = relaxation.status is SolverStatus.OPTIMAL
    if solved and dual.value > (relaxation.objective or 0) + 1.001:
        raise RuntimeError(f"dual {dual.value} above LP {relaxation.objective}")
    if max(dual.value, relaxation.bound) > tel:
        raise RuntimeError(f"a bound is above the schedule's {tel}")
    return {
        **label,
        "kind": "lp",
        "lp": relaxation.objective,
        "lp_status": relaxation.status.value,
        "lp_bound": relaxation.bound,
        "lp_s": relaxation.runtime_s,
        "dual": dual.value,
        "dual_s": dual.runtime_s,
        "fluid": bound(instance, "fluid").value,
        "auto_tel": tel,
    }


def _against_whole_matrix(data: Path) -> Row:
    """Time HiGHS on the whole matrix, with all columns, at n = 120."""
    instance = mix(data, 120, 0.2, 1)
    whole = solve_relaxation(instance, solver="ipm", time_limit_s=HIGHS_LIMIT_S)
    columns = solve_relaxation(instance)
    dual = bound(instance, "dual")
    return {
        "kind": "whole",
        "n": 120,
        "whole_s": whole.runtime_s,
        "whole_status": whole.status.value,
        "columns_s": columns.runtime_s,
        "lp": columns.objective,
        "dual": dual.value,
        "dual_s": dual.runtime_s,
    }


def _large(data: Path, n: int, limit_s: float) -> Row:
    instance = mix(data, n, 0.2, 1)
    fluid = bound(instance, "fluid")
    began = time.perf_counter()
    dual = bound(instance, "dual", time_limit=limit_s)
    seconds = time.perf_counter() - began
    own_limit = dual.value
    if n <= 2000:
        own_limit = bound(instance, "dual", time_limit=60).value
    tel = solve(instance, "svf", backfill=20, bound="none").tel
    return {
        "kind": "large",
        "n": n,
        "fluid": fluid.value,
        "fluid_s": fluid.runtime_s,
        "dual": dual.value,
        "dual_s": seconds,
        "limit_s": limit_s,
        "own_limit": own_limit,
        "svf_20": tel,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def page(rows: list[Row]) -> str:
    """Three tables: against the LP, against HiGHS on the whole matrix, by n."""
    parts = [_small_table([row for row in rows if row["kind"] == "lp"])]
    parts += [_whole_text(row) for row in rows if row["kind"] == "whole"]
    parts.append(_large_table([row for row in rows if row["kind"] == "large"]))
    return "\n\n".join(parts)


def _small_table(rows: list[Row]) -> str:
    table = []
    for n in sorted({row["n"] for row in rows}):
        for arrivals in (False, True):
            here = [
                row
                for row in rows
                if row["n"] == n
                and row["arrivals"] == arrivals
                and row["lp_status"] == "optimal"
            ]
            if not here:
                continue
            short = [1 - row["dual"] / row["lp"] for row in here]
            table.append(
                [
                    str(n),
                    "yes" if arrivals else "no",
                    str(len(here)),
                    f"{median(short):.3%}",
                    f"{max(short):.3%}",
                    f"{median(1 - row['fluid'] / row['lp'] for row in here):.1%}",
                    f"{median(row['dual_s'] for row in here):.2f}",
                    f"{median(row['lp_s'] for row in here):.2f}",
                    f"{median(row['auto_tel'] / row['lp'] for row in here):.4f}",
                ]
            )
    columns = ["n", "arrivals", "instances", "dual below LP, median", "worst"]
    columns += ["fluid below LP", "dual s", "LP by columns s", "auto / LP"]
    return "\n\n".join(
        [
            "The dual bound against the optimum of the linear relaxation (by column "
            f"generation; what it does not solve in {LP_LIMIT_S:g} s is left out), "
            f"80/20 mix, budgets {', '.join(f'{budget:,}' for budget in BUDGETS)}.",
            markdown_table(columns, table),
        ]
    )


def _whole_text(row: Row) -> str:
    return (
        f"HiGHS with all columns at n = {row['n']} (interior point): "
        f"{row['whole_s']:.1f} s ({row['whole_status']}, stopped at "
        f"{HIGHS_LIMIT_S:g} s if not done); column generation: "
        f"{row['columns_s']:.1f} s; the dual bound, "
        f"{1 - row['dual'] / row['lp']:.3%} below the LP: {row['dual_s']:.2f} s, "
        f"{row['whole_s'] / row['dual_s']:.0f} times faster than HiGHS, or more."
    )


def _large_table(rows: list[Row]) -> str:
    table = [
        [
            f"{row['n']:,}",
            f"{row['dual_s']:.1f}",
            f"{row['limit_s']:g}",
            f"{row['fluid_s']:.2f}",
            f"{row['dual'] / row['fluid'] - 1:.3%}",
            f"{1 - row['dual'] / row['own_limit']:.3%}",
            f"{row['svf_20'] / row['dual']:.4f}",
            f"{row['gib']:.2f}",
        ]
        for row in rows
    ]
    columns = ["n", "dual s", "limit s", "fluid s", "dual over fluid"]
    columns += ["below its own limit", "svf 20 / dual", "peak GiB"]
    return "\n\n".join(
        [
            "Growth with n, 80/20 mix, M = 16,492. Its own limit is what it reaches in "
            "60 s (n = 2,000 only).",
            markdown_table(columns, table),
        ]
    )


SPEC = Spec("The dual bound against the linear relaxation", run, page, needs=("data",))
