"""Receding-horizon Sorted-F against the papers' rivals, from light load to overload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.data import KV_BUDGET
from benchmarks.online_settings import as_row, first, mean_latency, middle, mixed, p99
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from online.named import parse_many
from online.rules import StepRules
from online.sweep import Setting, grid, sweep
from sortedf import EngineModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from sortedf.traces import Trace

LOADS = (0.5, 0.8, 1.0, 1.2, 1.5)
SEEDS = (1, 2, 3)
POLICIES = ("fcfs", "mc-sf", "sorted-f-online", "svf")

WORKLOADS: dict[str, Callable[[Settings, int], Trace]] = {
    "80/20": lambda settings, n: mixed(settings.data, n, 0.2),
    "Azure conversation": lambda settings, n: first(
        settings.data, "azure_2023_conv", n
    ),
}


def run(settings: Settings) -> list[Row]:
    """Simulate in unit steps by the papers' rules, so that every run has a bound."""
    n = settings.pick(800, 30)
    loads = LOADS[::4] if settings.quick else LOADS
    rules = StepRules.of_model(KV_BUDGET, EngineModel())
    rows = []
    for workload, make in WORKLOADS.items():
        setting = Setting(make(settings, n), rules, bound="fluid")
        policies = parse_many(",".join(POLICIES))
        for outcome in sweep(setting, grid(policies, loads=loads, seeds=SEEDS)):
            rows.append(as_row(outcome, workload=workload))
    return rows


def page(rows: list[Row]) -> str:
    """For each workload: means and tails against FCFS, and the gap to the bound."""
    n = rows[0]["requests"]
    parts = [
        f"{n:,} requests with Poisson arrivals, M = {KV_BUDGET:,}, unit steps and the "
        f"papers' rules; medians of seeds {', '.join(map(str, SEEDS))}. Load 1.0 is "
        "where a cache that is always full to the last token would just keep up.",
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


add("online", Spec("Online policies over load", run, page))
