"""Learned rankers against cheap ones and a second opinion, and across models."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.ranking.parts.cells import (
    SETTINGS,
    Bench,
    pairwise_less,
    second_opinions,
    without_lists,
    write_scores,
)
from benchmarks.ranking.parts.data import DATA_SETS, SEEDS
from online.ranking.losses import LOSSES
from online.ranking.rivals import RIVALS
from sortedf.plotting.canvas import new_figure, tidy

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

METHODS = (*LOSSES, *RIVALS)
OPINION = "second opinion"
SCORES = "ranking_scores.jsonl"


def run(settings: Settings) -> list[Row]:
    """Train every method on every model's lengths with every seed."""
    journal = Journal("ranking", settings)
    rows: list[Row] = []
    sets = DATA_SETS[:1] if settings.quick else DATA_SETS
    seeds = SEEDS[:1] if settings.quick else SEEDS
    for of in sets:
        bench = Bench.make(settings, of)
        models = of.trained[:1] if settings.quick else of.trained
        for seed in seeds:
            for model in models:
                for method in METHODS:
                    key = f"{of.name}, {model}, {method}, seed {seed}"
                    make = _cell(bench, model, method, seed)
                    rows.append(journal.row(key, make))
                    write_scores(settings.results / SCORES, rows)
    tops = [
        row
        for of in sets
        for seed in seeds
        for row in second_opinions(settings, of, seed)
    ]
    wanted = {(row["data"], row["model"]) for row in rows}
    return [
        *map(without_lists, rows),
        *(row for row in tops if (row["data"], row["model"]) in wanted),
    ]


def _cell(bench: Bench, model: str, method: str, seed: int) -> Callable[[], Row]:
    return lambda: bench.row(model, method, seed)


def page(rows: list[Row]) -> str:
    """Lay out each data set's table, how often each method is first, and matrices."""
    cells = list(dict.fromkeys((row["data"], row["model"]) for row in rows))
    seeds = sorted({row["seed"] for row in rows})
    parts = [
        "Kendall's tau_b between scores and true answer lengths on test prompts that "
        "no training or validation saw (the split is by prompt, by a hash of its text "
        f"and the seed); medians of {len(seeds)} seeds, each with a split of its own. "
        "The second opinion is how well another language model's answer lengths, the "
        "best of those in the data, rank the same prompts: where models are alike, "
        "about the most that a prompt alone can tell; where they are not, less.",
        _how(),
        _table(rows, cells),
        _verdict(rows, cells),
    ]
    for data in dict.fromkeys(data for data, _ in cells):
        parts += [f"## {data}: across models", _matrix(rows, data)]
    return "\n\n".join(part for part in parts if part)


def _how() -> str:
    return (
        "All three losses train the same network from the same start on the same "
        "batches: all-MiniLM-L6-v2 (6 layers, width 384), of which the embeddings and "
        f"the lowest {SETTINGS.frozen_layers} layers stay frozen so that a training "
        "fits on one CPU core; the last layer and the linear layer on [CLS] learn, at "
        f"a rate of {SETTINGS.learning_rate:g} with warm-up and decay, in batches of "
        f"{SETTINGS.batch_size} prompts for at most {SETTINGS.epochs} epochs; the one "
        "that ranks the validation part best is kept. Pairs are all pairs of a batch "
        f"whose lengths differ by at least {SETTINGS.delta:g} of the longer one; the "
        f"margin is {SETTINGS.margin:g}. Longer prompts keep their head and tail. What "
        "freezing costs is measured in `ranking_depth`."
    )


def _middle(rows: list[Row], data: str, model: str, method: str) -> float | None:
    found = [
        row["tau_b"]
        for row in rows
        if (row["data"], row["model"], row["method"]) == (data, model, method)
        and row["tau_b"] is not None
    ]
    return median(found) if found else None


def _table(rows: list[Row], cells: list[tuple[str, str]]) -> str:
    table = []
    for data, model in cells:
        taus = {method: _middle(rows, data, model, method) for method in METHODS}
        best = max(tau for tau in taus.values() if tau is not None)
        shown = [_figure(tau, bold=tau == best) for tau in taus.values()]
        top = _figure(_middle(rows, data, model, OPINION))
        table.append(
            [f"{data}, {model}", *shown, top, str(_prompts(rows, data, model))]
        )
    return markdown_table(
        ["trained and tested on", *METHODS, OPINION, "training prompts"], table
    )


def _prompts(rows: list[Row], data: str, model: str) -> int:
    mine = [row for row in rows if (row["data"], row["model"]) == (data, model)]
    return max(int(row.get("train_prompts", 0)) for row in mine)


def _figure(tau: float | None, *, bold: bool = False) -> str:
    if tau is None:
        return "-"
    return f"**{tau:.3f}**" if bold else f"{tau:.3f}"


def _verdict(rows: list[Row], cells: list[tuple[str, str]]) -> str:
    """Count, by medians and by single seeds, which loss is first."""
    by_cell = {
        cell: {loss: _middle(rows, *cell, loss) or 0.0 for loss in LOSSES}
        for cell in cells
    }
    first = {
        loss: sum(max(taus, key=taus.__getitem__) == loss for taus in by_cell.values())
        for loss in LOSSES
    }
    cheap = {
        cell: max(_middle(rows, *cell, rival) or 0.0 for rival in RIVALS)
        for cell in cells
    }
    above = sum(taus["pairwise"] > cheap[cell] for cell, taus in by_cell.items())
    counted = ", ".join(f"{loss} {count}" for loss, count in first.items())
    lines = [
        f"First of the three losses by median, of {len(cells)} cells: {counted}. "
        f"Pairwise is above the best cheap rival in {above} of {len(cells)}.",
        *(pairwise_less(rival, rows) for rival in ("pointwise", "listwise")),
    ]
    return "\n\n".join(lines)


def _matrix(rows: list[Row], data: str) -> str:
    """Pairwise rankers: trained on the row's model, tested on the column's."""
    mine = [row for row in rows if row["data"] == data and row["method"] == "pairwise"]
    trained = list(dict.fromkeys(row["model"] for row in mine))
    tested = list(
        dict.fromkeys([*trained, *(m for row in mine for m in row["across"])])
    )
    table = []
    for model in trained:
        cells = []
        for other in tested:
            taus = [
                row["tau_b"] if other == model else row["across"][other]
                for row in mine
                if row["model"] == model
            ]
            cells.append(_figure(median(taus), bold=other == model))
        table.append([model, *cells])
    return "\n\n".join(
        [
            "Pairwise; trained on the lengths of the row's model, tested on those of "
            "the column's model, on prompts that no training used:",
            markdown_table(["trained on", *tested], table),
        ]
    )


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Draw each cell's median by method, beside the second opinion."""
    cells = list(dict.fromkeys((row["data"], row["model"]) for row in rows))
    figure = new_figure("Kendall's tau_b on test prompts, medians over seeds")
    axes = figure.subplots()
    marks = "os^xPD"
    for k, method in enumerate(METHODS):
        axes.plot(*_points(rows, cells, method), marks[k], label=method, alpha=0.8)
    tops = _points(rows, cells, OPINION)
    axes.plot(*tops, "|", color="0.2", markersize=16, label=OPINION)
    axes.set_yticks(range(len(cells)), [f"{data}\n{model}" for data, model in cells])
    axes.invert_yaxis()
    axes.set_xlabel("tau_b")
    axes.legend(loc="best", fontsize=8)
    tidy(axes)
    return {"tau": figure}


def _points(
    rows: list[Row], cells: list[tuple[str, str]], method: str
) -> tuple[list[float], list[int]]:
    """Medians of a method, and the positions of the cells that have one."""
    taus = [(_middle(rows, *cell, method), line) for line, cell in enumerate(cells)]
    known = [(tau, line) for tau, line in taus if tau is not None]
    return [tau for tau, _ in known], [line for _, line in known]


SPEC = Spec("Rankers of prompts by answer length", run, page, figures, needs=("data",))
