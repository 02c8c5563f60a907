"""The page about the gain from trained rankers, and its picture."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.registry import Row, markdown_table
from benchmarks.ranking.parts.rank_worth_case import PAPERS_S
from benchmarks.ranking.parts.rank_worth_figures import panels
from benchmarks.ranking.parts.rank_worth_page import FIGURES, chosen, gain
from online.plots.line_style import legend, style
from sortedf.plotting.canvas import NEUTRAL, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

YARDSTICKS = ("fcfs", "oracle")
MARKERS = "osD^vPX*"


def page(rows: list[Row]) -> str:
    """Lay out a table for each workload."""
    trained = chosen(rows, part="trained")
    if not trained:
        return "No ranker was trained on the answers of a model that is run here."
    seeds = ", ".join(str(s) for s in dict.fromkeys(row["seed"] for row in trained))
    parts = [
        f"A burst of {trained[0]['n']:,} requests, drawn from test prompts that a "
        f"ranker has not seen, in order of its scores; medians of seeds {seeds}, "
        "which are also those of its training. How many times smaller a figure is "
        "than under `fcfs`; in brackets what noise of the same tau_b gives, on the "
        "line between the two nearest that were run (`rank_worth.md`). With the "
        f"paper's limit: a request that has waited for {PAPERS_S:g} s goes first."
    ]
    for name in dict.fromkeys(row["workload"] for row in trained):
        own = chosen(trained, workload=name)
        lines = [
            _line(method, limit, own, chosen(rows, part="curve", workload=name))
            for method in _methods(own)
            for limit in (None, PAPERS_S)
            if _rows_of(own, method, limit)
        ]
        columns = ["order", "tau_b", *FIGURES.values()]
        tested = f"{own[0]['test_prompts']} test prompts"
        parts += [f"**{name}**, {tested}", markdown_table(columns, lines)]
    return "\n\n".join(parts)


def _methods(rows: list[Row]) -> list[str]:
    """Rankers, best tau_b first, and the oracle after them."""
    orders = dict.fromkeys(row["order"] for row in rows)
    methods = [order for order in orders if order not in YARDSTICKS]

    def quality(method: str) -> float:
        return -median(float(row["tau_b"]) for row in chosen(rows, order=method))

    return [*sorted(methods, key=quality), "oracle"]


def _rows_of(rows: list[Row], order: str, limit: float | None) -> list[Row]:
    own = chosen(rows, order=order)
    return [row for row in own if row.get("limit_s") == limit]


def _line(
    order: str, limit: float | None, rows: list[Row], curves: list[Row]
) -> list[str]:
    own = _rows_of(rows, order, limit)
    tau = median(float(row["tau_b"]) for row in own)
    line = [order if limit is None else f"{order}, {limit:g} s", f"{tau:.2f}"]
    for figure in FIGURES:
        cell = f"{gain(own, chosen(rows, order='fcfs'), figure):.2f}"
        expected = expected_gain(curves, tau, figure, limit)
        line.append(cell if expected is None else f"{cell} ({expected:.2f})")
    return line


def expected_gain(
    curves: list[Row], tau: float, figure: str, limit: float | None
) -> float | None:
    """Gain of noise with this tau_b, on the line between those that were run."""
    own = [r for r in chosen(curves, figure=figure) if r["limit_s"] == limit]
    if not own:
        return None
    return float(np.interp(tau, own[0]["targets"], own[0]["gains"]))


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Mark every ranker and seed over the lines of noise."""
    trained = chosen(rows, part="trained")
    if not trained:
        return {}
    figure = new_figure("Trained rankers (marks, one for each seed) and noise (lines)")
    lines: dict[str, Line2D] = {}
    for axes, key in zip(panels(figure), FIGURES, strict=True):
        for k, name in enumerate(dict.fromkeys(row["workload"] for row in trained)):
            for curve in chosen(rows, part="curve", workload=name, figure=key):
                if curve["limit_s"] is None:
                    line = axes.plot(curve["targets"], curve["gains"], **style(k))
                    lines[name] = line[0]
            _mark(axes, chosen(trained, workload=name), key, k, lines)
    legend(figure, lines)
    return {"burst": figure}


def _mark(
    axes: Axes, rows: list[Row], key: str, rank: int, lines: dict[str, Line2D]
) -> None:
    methods = [m for m in sorted(_methods(rows)) if m != "oracle"]
    for method, marker in zip(methods, MARKERS, strict=False):
        own = _rows_of(rows, method, None)
        looks: dict[str, Any] = {
            "linestyle": "none",
            "markersize": 5,
            "markerfacecolor": "none",
            "marker": marker,
        }
        axes.plot(
            [row["tau_b"] for row in own],
            [gain([row], chosen(rows, order="fcfs"), key) for row in own],
            color=style(rank)["color"],
            **looks,
        )
        if method not in lines:
            (lines[method],) = axes.plot([], [], color=NEUTRAL, **looks)
