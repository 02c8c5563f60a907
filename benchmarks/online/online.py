"""Receding-horizon Sorted-F against the papers' rivals, from light load to overload."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.common.data import KV_BUDGET
from benchmarks.common.journal import Journal
from benchmarks.common.online_runs import (
    as_row,
    mean_latency,
    middle,
    mixed,
    p99,
    window,
)
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.online.parts.figures import over_load
from online.named import parse_many
from online.sweep import Run, Setting, execute, grid
from sortedf import EngineModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from sortedf.traces import Trace

LOADS = (0.5, 0.7, 0.9, 1.0, 1.2, 1.5)
SEEDS = (1, 2, 3)
POLICIES = ("fcfs", "mc-sf", "sorted-f-online", "svf", "svf-boost")

WORKLOADS: dict[str, Callable[[Settings, int, int], Trace]] = {
    "80/20": lambda settings, n, seed: mixed(settings.data, n, 0.2, seed),
    "Azure conversation": lambda settings, n, seed: window(
        settings.data, "azure_2023_conv", n, seed
    ),
}
"""Requests by name, for a number of them and a seed; arrivals are drawn beside."""


def run(settings: Settings) -> list[Row]:
    """Simulate in unit steps by the papers' rules, so that every run has a bound."""
    journal = Journal("online", settings)
    n = settings.pick(1000, 30)
    loads = LOADS[1::4] if settings.quick else LOADS
    rules = EngineModel(KV_BUDGET)
    policies = parse_many(",".join(POLICIES))
    rows = []
    for workload, make in WORKLOADS.items():
        for seed in SEEDS:
            setting = Setting(make(settings, n, seed), rules, bound="fluid")
            for one in grid(policies, loads=loads, seeds=(seed,)):
                key = f"{workload}, {one.load:g}, {one.policy}, {seed}"
                make_row = partial(_measured, setting, one, workload)
                rows.append(journal.row(key, make_row))
    return rows


def _measured(setting: Setting, run: Run, workload: str) -> Row:
    return as_row(execute(setting, run), workload=workload)


def page(rows: list[Row]) -> str:
    """For each workload: means and tails against FCFS, and the gap to the bound."""
    n = rows[0]["requests"]
    parts = [
        f"{n:,} requests with Poisson arrivals, M = {KV_BUDGET:,}, unit steps and the "
        f"papers' rules; medians of seeds {', '.join(map(str, SEEDS))}, each with "
        "requests of its own. At load 1.0 work arrives as fast as a cache that is "
        "always full to the last token can serve it. All know the true lengths; "
        "`svf-boost` is ours.",
    ]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        parts += [
            f"## {workload}",
            "Mean latency of `fcfs` over that of the others (larger is better):",
            _ratios(mine, mean_latency),
            "P99 of TTLT of `fcfs` over that of the others:",
            _ratios(mine, p99("ttlt")),
            "Mean latency over the bound in hindsight, less one:",
            _gaps(mine),
        ]
    return "\n\n".join(parts)


def _by_load(rows: list[Row]) -> dict[float, dict[str, list[Row]]]:
    found: dict[float, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(row["load"], {}).setdefault(row["policy"], []).append(row)
    return found


def _ratios(rows: list[Row], figure: Callable[[Row], float]) -> str:
    rivals = [policy for policy in POLICIES if policy != "fcfs"]
    table = []
    for load, by_policy in _by_load(rows).items():
        fcfs = {row["seed"]: figure(row) for row in by_policy["fcfs"]}
        ratios = [
            middle(by_policy[rival], lambda row: fcfs[row["seed"]] / figure(row))  # noqa: B023
            for rival in rivals
        ]
        table.append([f"{load:g}", *(f"{ratio:.2f}" for ratio in ratios)])
    return markdown_table(["load", *rivals], table)


def _gaps(rows: list[Row]) -> str:
    table = [
        [
            f"{load:g}",
            *(
                f"{middle(by_policy[policy], lambda row: float(row['gap'])):.1%}"
                for policy in POLICIES
            ),
        ]
        for load, by_policy in _by_load(rows).items()
    ]
    return markdown_table(["load", *POLICIES], table)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Mean and P99 over load, with the spread of the seeds."""
    return {"load": over_load(rows, "steps")}


SPEC = Spec("Online policies over load", run, page, figures, needs=("data",))
