"""Quality of rankers by the number of training prompts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.ranking.parts.cells import Bench, without_lists
from benchmarks.ranking.parts.data import DATA_SETS, SEEDS
from online.ranking.losses import LOSSES
from sortedf.plotting.canvas import new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA, MODEL = "zeroeval_math_code", "gpt-4o-2024-08-06"
SIZES = (250, 500, 1000, 1900)
METHODS = (*LOSSES, "boosting", "neighbours")


def run(settings: Settings) -> list[Row]:
    """Train every method on more and more prompts; the test prompts stay the same."""
    journal = Journal("ranking_size", settings)
    of = next(of for of in DATA_SETS if of.name == DATA)
    bench = Bench.make(settings, replace(of, others=()))
    rows = []
    for size in (20,) if settings.quick else SIZES:
        for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
            for method in METHODS:
                make = partial(bench.row_of_size, MODEL, method, seed, size)
                rows.append(journal.row(f"{method}, seed {seed}, {size} prompts", make))
    return [without_lists(row) for row in rows]


def page(rows: list[Row]) -> str:
    """Lay out one table: sizes in rows, methods in columns."""
    sizes = sorted({row["size"] for row in rows})
    seeds = {row["seed"] for row in rows}
    tests = {row["test_prompts"] for row in rows}
    table = []
    for size in sizes:
        taus = {method: _middle(rows, method, size) for method in METHODS}
        best = max(taus.values())
        table.append(
            [
                f"{size:,}",
                *(f"**{t:.3f}**" if t == best else f"{t:.3f}" for t in taus.values()),
            ]
        )
    return "\n\n".join(
        [
            f"{DATA}, answers of {MODEL}: tau_b by the number of training prompts, on "
            f"the same {min(tests)} to {max(tests)} test prompts; medians of "
            f"{len(seeds)} seeds. Otherwise as in `ranking`.",
            markdown_table(["training prompts", *METHODS], table),
        ]
    )


def _middle(rows: list[Row], method: str, size: int) -> float:
    mine = [row for row in rows if (row["method"], row["size"]) == (method, size)]
    return float(median(row["tau_b"] for row in mine))


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Draw tau_b over the number of prompts."""
    figure = new_figure("tau_b by the number of training prompts")
    axes = figure.subplots()
    sizes = sorted({row["size"] for row in rows})
    for mark, method in zip("os^PD", METHODS, strict=True):
        taus = [_middle(rows, method, size) for size in sizes]
        axes.plot(sizes, taus, f"{mark}-", label=method)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.set_xlabel("training prompts")
    axes.set_ylabel("tau_b")
    axes.legend()
    tidy(axes)
    return {"tau": figure}


SPEC = Spec(
    "Rankers by the number of training prompts", run, page, figures, needs=("data",)
)
