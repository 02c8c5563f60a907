"""A-min: the cost of knowing an answer's length only as a class of lengths."""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.common.data import KV_BUDGET
from benchmarks.common.journal import Journal
from benchmarks.common.online_runs import mean_latency, middle
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.online.online import WORKLOADS
from benchmarks.online.parts.figures import over_width
from online.arrivals import arrive
from online.metrics import measure
from online.prediction import length_classes
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.load import rate_of_load
from sortedf.step_time import UNIT_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from matplotlib.figure import Figure

    from online.metrics import Metrics
    from sortedf.engine_model import Eviction
    from sortedf.traces import Trace

WIDTHS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
LOAD = 1.2
LIMIT = 1.05
SEEDS = (1, 2, 3)

VARIANTS: dict[str, tuple[Eviction, dict[str, Any]]] = {
    "restart": ("restart", {}),
    "recompute": ("recompute", {}),
    "recompute, raised twofold": ("recompute", {"factor": 2.0}),
}
"""Rule of eviction, and options of `sorted-f-amin`."""


def run(settings: Settings) -> list[Row]:
    """Simulate A-min at every width, and FCFS, which knows nothing, beside it."""
    journal = Journal("amin", settings)
    n = settings.pick(500, 30)
    widths = WIDTHS[::6] if settings.quick else WIDTHS
    rows = []
    for workload, make in WORKLOADS.items():
        for seed in SEEDS:
            trace = make(settings, n, seed)
            rate = rate_of_load(LOAD, trace, EngineModel.vllm(KV_BUDGET), UNIT_STEPS)
            arrived = arrive(trace, "poisson", rate=rate, seed=seed)
            for key, make_row in _cells(arrived, widths):
                row = journal.row(f"{workload}, {key}, {seed}", make_row)
                rows.append({"workload": workload, "seed": seed, **row})
    return rows


def _cells(
    trace: Trace, widths: tuple[float, ...]
) -> Iterator[tuple[str, Callable[[], Row]]]:
    @cache
    def fcfs(eviction: Eviction) -> Metrics:
        rules = EngineModel.vllm(KV_BUDGET, eviction=eviction)
        return measure(simulate(trace, "fcfs", rules), rules, UNIT_STEPS)

    for variant, width in product(VARIANTS, widths):
        yield f"{variant}, {width:g}", partial(_measured, trace, variant, width, fcfs)


def _measured(
    trace: Trace, variant: str, width: float, fcfs_of: Callable[[Eviction], Metrics]
) -> Row:
    eviction, options = VARIANTS[variant]
    rules = EngineModel.vllm(KV_BUDGET, eviction=eviction)
    lower, _ = length_classes(trace.decode, width, int(trace.decode.max()))
    fcfs = fcfs_of(eviction)
    log = simulate(trace, "sorted-f-amin", rules, predicted=lower, options=options)
    return {
        "variant": variant,
        "width": width,
        "fcfs_mean_latency": fcfs.mean_latency,
        "fcfs_lost": fcfs.preemptions,
        **measure(log, rules, UNIT_STEPS).as_dict(),
    }


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
        _verdict(rows),
    ]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        parts += [f"## {workload}", _table(mine)]
    return "\n\n".join(parts)


def _verdict(rows: list[Row]) -> str:
    """Compare knowing little with knowing nothing, in a sentence."""
    medians = {
        (row["workload"], row["variant"], row["width"]): middle(
            [other for other in rows if _same(row, other)], _ratio
        )
        for row in rows
    }
    worst = max(medians, key=medians.__getitem__)
    workload, variant, width = worst
    single = max(map(_ratio, rows))
    return (
        f"The worst of all medians is {medians[worst]:.2f} ({workload}, {variant}, "
        f"width {width:g}), the worst single run {single:.2f}. "
        f"{sum(ratio > LIMIT for ratio in medians.values())} of {len(medians)} medians "
        f"are above {LIMIT:g}. If little is known more requests start than fit until "
        "they complete, and those with the fewest tokens are evicted again and again; "
        "this costs as much as serving short requests first gains. Raising outlived "
        "estimates twofold keeps more memory free, but delays more requests as well."
    )


def _same(row: Row, other: Row) -> bool:
    return all(row[key] == other[key] for key in ("workload", "variant", "width"))


def _ratio(row: Row) -> float:
    return mean_latency(row) / float(row["fcfs_mean_latency"])


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
            ratio = middle(at, _ratio)
            lost = middle(at, lambda row: float(row["preemptions"] + row["evictions"]))
            cells.append(f"{ratio:.2f} ({lost:,.0f})")
        table.append([variant, *cells])
    return markdown_table(["eviction", *(f"{width:g}" for width in widths)], table)


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Mean latency over that of FCFS."""
    return {"width": over_width(rows)}


SPEC = Spec("A-min over the width of intervals", run, page, figures, needs=("data",))
