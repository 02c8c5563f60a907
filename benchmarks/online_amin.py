"""A-min: what it costs to know an answer's length only as a class of lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.data import KV_BUDGET
from benchmarks.online_settings import first, mean_latency, middle, mixed
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from online.arrivals import arrive
from online.load import rate_of_load
from online.metrics import measure
from online.prediction import length_classes
from online.rules import StepRules
from online.simulator import simulate
from online.step_time import UNIT_STEPS

if TYPE_CHECKING:
    from typing import Any

    from online.rules import Eviction
    from sortedf.traces import Trace

WIDTHS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
LOAD = 1.2
SEEDS = (1, 2, 3)

VARIANTS: dict[str, tuple[Eviction, dict[str, Any]]] = {
    "restart": ("restart", {}),
    "recompute": ("recompute", {}),
    "recompute, raised twofold": ("recompute", {"factor": 2.0}),
}
"""Rule of eviction, and options of `sorted-f-amin`."""


def run(settings: Settings) -> list[Row]:
    """Simulate A-min at every width, and FCFS, which knows nothing, beside it."""
    n = settings.pick(500, 30)
    widths = WIDTHS[::6] if settings.quick else WIDTHS
    rows = []
    for workload, trace in {
        "80/20": mixed(settings.data, n, 0.2),
        "Azure conversation": first(settings.data, "azure_2023_conv", n),
    }.items():
        for seed in SEEDS:
            rules = StepRules(KV_BUDGET)
            rate = rate_of_load(LOAD, trace, rules, UNIT_STEPS)
            arrived = arrive(trace, "poisson", rate=rate, seed=seed)
            where = {"workload": workload, "seed": seed}
            rows += [{**where, **row} for row in _compare(arrived, rules, widths)]
    return rows


def _compare(trace: Trace, rules: StepRules, widths: tuple[float, ...]) -> list[Row]:
    rows = []
    longest = int(trace.decode.max())
    for label, (eviction, options) in VARIANTS.items():
        ruled = replace(rules, eviction=eviction)
        fcfs = measure(simulate(trace, "fcfs", ruled), ruled, UNIT_STEPS)
        for width in widths:
            lower, _ = length_classes(trace.decode, width, longest)
            log = simulate(
                trace, "sorted-f-amin", ruled, predicted=lower, options=options
            )
            found = measure(log, ruled, UNIT_STEPS)
            rows.append(
                {
                    "variant": label,
                    "width": width,
                    "fcfs_mean_latency": fcfs.mean_latency,
                    **found.as_dict(),
                }
            )
    return rows


def page(rows: list[Row]) -> str:
    """Mean latency over that of FCFS, by width, for each rule of eviction."""
    parts = [
        f"{rows[0]['requests']:,} requests with Poisson arrivals at load {LOAD:g}, M = "
        f"{KV_BUDGET:,}, unit steps; medians of seeds {', '.join(map(str, SEEDS))}. Of "
        "each answer only a class of lengths is known: the logarithm of the length is "
        "cut into classes as wide as the given part of its whole range (0: exact, 1: "
        "nothing is known). `sorted-f-amin` goes by the lower end. Mean latency over "
        "that of `fcfs` under the same rule of eviction (below 1 is better), and in "
        "brackets how often KV was lost.",
    ]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        parts += [f"## {workload}", _table(mine)]
    return "\n\n".join(parts)


def _table(rows: list[Row]) -> str:
    widths = list(dict.fromkeys(row["width"] for row in rows))
    table = []
    for variant in VARIANTS:
        cells = []
        for width in widths:
            at = [
                row
                for row in rows
                if (row["variant"], row["width"]) == (variant, width)
            ]
            ratio = middle(at, lambda row: mean_latency(row) / row["fcfs_mean_latency"])
            lost = middle(at, lambda row: float(row["preemptions"] + row["evictions"]))
            cells.append(f"{ratio:.2f} ({lost:,.0f})")
        table.append([variant, *cells])
    return markdown_table(["eviction", *(f"{width:g}" for width in widths)], table)


add("amin", Spec("A-min over the width of intervals", run, page))
