"""Pictures of the online benchmarks: latency over load, and A-min over the width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.common.online_runs import mean_latency, middle, p99
from online.plots.line_style import legend, style
from sortedf.plotting.canvas import NEUTRAL, new_figure, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from benchmarks.common.registry import Row


def over_load(rows: list[Row], unit: str) -> Figure:
    """Draw mean and P99 of TTLT over load, a line of panels per workload."""
    workloads = _distinct(rows, "workload")
    figure = new_figure("Latency over load: medians and ranges of the seeds")
    panels = figure.subplots(len(workloads), 2, sharex=True, squeeze=False)
    lines: dict[str, Line2D] = {}
    for line, workload in zip(panels, workloads, strict=True):
        mine = [row for row in rows if row["workload"] == workload]
        for axes, (name, figure_of) in zip(
            line, (("mean", mean_latency), ("P99", p99("ttlt"))), strict=True
        ):
            for rank, policy in enumerate(_distinct(mine, "policy")):
                some = [row for row in mine if row["policy"] == policy]
                lines[policy] = _band(axes, some, "load", figure_of, rank)
            axes.set_yscale("log")
            axes.set_title(f"{workload}: {name} TTLT ({unit})", fontsize=10)
            tidy(axes)
    for axes in panels[-1]:
        axes.set_xlabel("load")
    legend(figure, lines)
    return figure


def over_width(rows: list[Row]) -> Figure:
    """Draw A-min's mean latency over that of `fcfs`, by how little is known."""
    workloads = _distinct(rows, "workload")
    figure = new_figure("Mean latency over that of fcfs: below 1 is better")
    panels = figure.subplots(1, len(workloads), sharey=True, squeeze=False)[0]
    lines: dict[str, Line2D] = {}
    for axes, workload in zip(panels, workloads, strict=True):
        mine = [row for row in rows if row["workload"] == workload]
        for rank, variant in enumerate(_distinct(mine, "variant")):
            some = [row for row in mine if row["variant"] == variant]
            lines[variant] = _band(axes, some, "width", _over_fcfs, rank)
        axes.axhline(1.05, color=NEUTRAL, linestyle="--", linewidth=1)
        axes.set_title(workload, fontsize=10)
        axes.set_xlabel("width of the classes of lengths")
        tidy(axes)
    legend(figure, lines)
    return figure


def _over_fcfs(row: Row) -> float:
    return mean_latency(row) / float(row["fcfs_mean_latency"])


def _distinct(rows: Iterable[Row], field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _band(
    axes: Axes, rows: list[Row], field: str, figure_of: Callable[[Row], float], k: int
) -> Line2D:
    """Draw a median with its range."""
    x = sorted({float(row[field]) for row in rows})
    at = [[row for row in rows if row[field] == value] for value in x]
    low = [min(map(figure_of, some)) for some in at]
    high = [max(map(figure_of, some)) for some in at]
    axes.fill_between(x, low, high, color=style(k)["color"], alpha=0.15, linewidth=0)
    median = [middle(some, figure_of) for some in at]
    (line,) = axes.plot(x, median, marker="o", markersize=3, **style(k))
    return line
