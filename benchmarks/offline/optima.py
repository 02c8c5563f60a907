"""Small instances solved to proven optimality: sizes reached, and the gap in two parts.

The gap between a schedule and a bound is partly the schedule's and partly the bound's.
If the optimum is known the two parts can be separated.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import Instance, bound, check, generate, solve

SEEDS = (1, 2, 3)

SIZES = (6, 8, 10, 12, 16, 20, 24, 30, 40, 50, 60)

CASES = ((0.2, 4200), (0.5, 8192), (0.2, 16_492))
"""Share of documents and budget."""

LONGEST_ANSWER = 600
"""Tokens at which answers are cut, as in a capped service."""

SEARCH_S = 2.0
"""Seconds for `auto`, whose schedule the proof begins with."""

PROOF_S = 60.0
"""Seconds for the branch and bound."""

UNPROVEN = 2
"""A case ends after the first size at which so many seeds found no proof."""


def run(settings: Settings) -> list[Row]:
    """Solve, prove, and check every schedule."""
    journal = Journal("optima", settings)
    rows = []
    for share, budget in CASES[: settings.pick(len(CASES), 1)]:
        for n in SIZES[: settings.pick(len(SIZES), 1)]:
            here = []
            for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
                key = f"n = {n}, {share:.0%} documents, M = {budget}, seed {seed}"
                make = partial(_row, n, share, budget, seed, settings.pick(60, 1))
                here.append(journal.row(key, make))
            rows += here
            if sum(not row["proven"] for row in here) >= UNPROVEN:
                break
    return rows


def _row(n: int, share: float, budget: int, seed: int, seconds: int) -> Row:
    trace = generate("mix", n, long_share=share, seed=seed)
    decode = np.minimum(trace.decode, LONGEST_ANSWER)
    instance = Instance(trace.prefill, decode, budget)
    row: Row = {"n": n, "share": share, "kv_budget": budget, "seed": seed}
    listed = solve(instance, "svf", backfill=20, bound="none")
    found = solve(instance, "auto", time_limit=SEARCH_S, bound="none")
    row["dual"] = bound(instance, "dual", time_limit=SEARCH_S).value
    row["bound"] = bound(instance, time_limit=SEARCH_S).value
    began = time.perf_counter()
    proof = solve(
        instance, "branching", start=found.schedule, bound="none", time_limit=seconds
    )
    row["proof_s"] = time.perf_counter() - began
    least = max(proof.lower_bound or 0, row["bound"])
    for result in (listed, found, proof):
        report = check(instance, result.schedule)
        if not report.feasible or report.tel < least:
            raise RuntimeError(f"{result} on {row}: {report}, bound {least}")
    row |= {"svf": listed.tel, "auto": found.tel, "best": proof.tel}
    return row | {"least": least, "proven": proof.tel == least}


def page(rows: list[Row]) -> str:
    """Lay out the share of proofs by size, and the gap in two parts if proven."""
    table, largest = [], []
    for share, budget in dict.fromkeys((r["share"], r["kv_budget"]) for r in rows):
        case = f"{share:.0%}, M = {budget:,}"
        own = [r for r in rows if (r["share"], r["kv_budget"]) == (share, budget)]
        for n in dict.fromkeys(row["n"] for row in own):
            here = [row for row in own if row["n"] == n]
            table.append([case, f"{n}", *_cells(here)])
        largest.append(f"{case}: n = {_largest(own)}")
    text = (
        f"Generated mixes, answers cut at {LONGEST_ANSWER} tokens. `auto` searched for "
        f"{SEARCH_S:g} s, then `branching` had {PROOF_S:g} s to prove that nothing is "
        "better. Medians of the seeds; the last four columns: of those with a proof. "
        "The optimum over two bounds is what the bounds leave, schedules over the "
        "optimum are what the schedules leave. A mix ends with the first size at which "
        f"{UNPROVEN} seeds or more have no proof."
    )
    columns = ["documents", "n", "proven", "seconds", "optimum / dual"]
    columns += ["optimum / best bound", "auto / optimum", "svf 20 / optimum"]
    proven = f"Largest size with every seed proven: {'; '.join(largest)}."
    return "\n\n".join([text, proven, markdown_table(columns, table)])


def _largest(rows: list[Row]) -> int:
    open_sizes = {row["n"] for row in rows if not row["proven"]}
    return max((row["n"] for row in rows if row["n"] not in open_sizes), default=0)


def _cells(rows: list[Row]) -> list[str]:
    proven = [row for row in rows if row["proven"]]
    cells = [f"{len(proven)} of {len(rows)}"]
    cells.append(f"{median(row['proof_s'] for row in rows):.1f}")
    pairs = (("best", "dual"), ("best", "bound"), ("auto", "best"), ("svf", "best"))
    for over, under in pairs:
        ratios = [row[over] / row[under] for row in proven]
        cells.append(f"{median(ratios):.4f}" if ratios else "")
    return cells


SPEC = Spec("Small instances to proven optimality", run, page)
