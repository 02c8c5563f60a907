"""The three losses with more of the encoder trained."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.ranking.parts.cells import (
    SETTINGS,
    Bench,
    pairwise_less,
    without_lists,
)
from benchmarks.ranking.parts.data import DATA_SETS, SEEDS
from online.ranking.losses import LOSSES

DEPTHS: dict[str, dict[str, Any]] = {
    "last layer": {},
    "last 2 layers": {"frozen_layers": 4, "learning_rate": 1e-4},
    "all 6 layers": {"frozen_layers": 0, "learning_rate": 5e-5},
}
"""Layers trained; the more of them, the lower the learning rate must be."""

CELLS = (
    *((of.name, model, "last 2 layers") for of in DATA_SETS for model in of.trained),
    ("alpaca_eval", "gpt-4-turbo-2024-04-09", "all 6 layers"),
)
"""Data set, model and depth; training all layers takes too long for more."""


def run(settings: Settings) -> list[Row]:
    """Train every loss with every seed, the cells one after the other."""
    journal = Journal("ranking_depth", settings)
    rows: list[Row] = []
    cells = CELLS[: settings.pick(len(CELLS), 1)]
    firsts = dict.fromkeys((data, model, "last layer") for data, model, _ in cells)
    benches: dict[str, Bench] = {}
    for data, model, depth in (*firsts, *cells):
        of = next(of for of in DATA_SETS if of.name == data)
        bench = benches.setdefault(data, Bench.make(settings, of))
        for seed in SEEDS[: settings.pick(len(SEEDS), 1)]:
            for loss in LOSSES:
                make = partial(bench.row, model, loss, seed, **DEPTHS[depth])
                key = f"{data}, {model}, {loss}, seed {seed}, {depth}"
                row = without_lists(journal.row(key, make))
                rows.append({**row, "depth": depth})
    return rows


def page(rows: list[Row]) -> str:
    """Lay out medians by trained layers, and the cost."""
    cells = sorted(
        {(row["data"], row["model"], row["depth"]) for row in rows},
        key=lambda cell: (cell[0], cell[1], list(DEPTHS).index(cell[2])),
    )
    table = []
    for cell in cells:
        mine = [r for r in rows if (r["data"], r["model"], r["depth"]) == cell]
        taus = {loss: _middle(mine, loss) for loss in LOSSES}
        best = max(taus.values())
        shown = [f"**{t:.3f}**" if t == best else f"{t:.3f}" for t in taus.values()]
        seconds = median(row["cpu_s"] for row in mine)
        table.append([", ".join(cell), *shown, f"{seconds:.0f}"])
    seeds = {row["seed"] for row in rows}
    rates = ", ".join(
        f"{changes.get('learning_rate', SETTINGS.learning_rate):g} for the {depth}"
        for depth, changes in DEPTHS.items()
    )
    parts = [
        "As in `ranking`, with more of the encoder trained and less of it frozen; "
        f"tau_b on test prompts, medians of {len(seeds)} seeds, and CPU seconds of "
        "a training with its tests. The paper trains all of a larger encoder "
        f"(bert-base-uncased, 12 layers). Learning rates: {rates}.",
        markdown_table(["trained and tested on", *LOSSES, "CPU s"], table),
    ]
    for depth in DEPTHS:
        mine = [row for row in rows if row["depth"] == depth]
        if mine:
            sentences = [
                pairwise_less(rival, mine) for rival in ("pointwise", "listwise")
            ]
            parts.append(f"{depth.capitalize()}. {' '.join(sentences)}")
    return "\n\n".join(parts)


def _middle(rows: list[Row], loss: str) -> float:
    return float(median(row["tau_b"] for row in rows if row["method"] == loss))


SPEC = Spec("Rankers by how much of the encoder is trained", run, page, needs=("data",))
