"""Pictures of the benchmark of tails: dominance of policies, and tails over gamma."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.common.online_runs import mean_latency, middle, p99
from benchmarks.online.parts.tails_page import (
    OURS,
    THEIRS,
    adaptive,
    by_case,
    knows_nothing,
    point,
    shown,
)
from online.plots.line_style import legend, style
from sortedf.plotting.canvas import NEUTRAL, matplotlib, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from benchmarks.common.registry import Row

NAMED = (
    "fcfs",
    "uniboost",
    "srpt",
    "svf",
    "sorted-f-online",
    "fcfs:admission=look-ahead",
)
"""Rivals that get a mark of their own; the others are small dots."""

MARKS = "osD^vP"


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Return the figures of the page by name."""
    drawn = {"pareto": _pareto(rows)}
    if any(row["part"] == "gamma" for row in rows):
        drawn["gamma"] = _gamma(rows)
    return drawn


def _pareto(rows: list[Row]) -> Figure:
    """Draw mean and P99 of TTLT of every policy, one panel per case, over `fcfs`."""
    table = by_case(rows)
    loads = sorted({load for _, load in table})
    workloads = list(dict.fromkeys(workload for workload, _ in table))
    figure = new_figure("Mean and P99 TTLT over those of fcfs: down and left is better")
    figure.set_size_inches(4 + 3.2 * len(loads), 2.6 * len(workloads))
    panels = figure.subplots(len(workloads), len(loads), squeeze=False)
    for line, workload in zip(panels, workloads, strict=True):
        for axes, load in zip(line, loads, strict=True):
            _scatter(axes, table[workload, load])
            axes.set_title(f"{workload}, load {load:g}", fontsize=9)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=9, frameon=False)
    figure.supxlabel("mean TTLT over fcfs", fontsize=10)
    figure.supylabel("P99 TTLT over fcfs", fontsize=10)
    return figure


def _scatter(axes: Axes, policies: dict[str, list[Row]]) -> None:
    mean, tail = point(policies["fcfs"])
    at = {
        policy: (x / mean, y / tail)
        for policy, rows in policies.items()
        for x, y in [point(rows)]
    }
    for blind, colour in ((True, "0.45"), (False, "0.8")):
        others = [
            at[name]
            for name in THEIRS
            if name in at and name not in NAMED and knows_nothing(name) == blind
        ]
        label = f"other {'blind' if blind else 'informed'} rivals"
        axes.plot(*zip(*others, strict=True), ".", color=colour, label=label)
    for rank, name in enumerate(name for name in NAMED if name in at):
        mark = MARKS[rank]
        axes.plot(*at[name], mark, mfc="none", color=NEUTRAL, label=shown(name))
    for rank, name in enumerate(OURS):
        axes.plot(*at[name], "*", markersize=11, color=style(rank)["color"], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_log(axes.xaxis)
    _plain_log(axes.yaxis)
    tidy(axes)


def _plain_log(axis: Axis) -> None:
    """Label a logarithmic axis by a few plain numbers."""
    ticker = matplotlib().ticker
    axis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_tick_params(labelsize=7)


def _gamma(rows: list[Row]) -> Figure:
    """Draw P99 and mean TTLT over a fixed gamma, with the adaptive one as a level."""
    table, fixed = by_case(rows), by_case(rows, "gamma")
    figure = new_figure("TTLT over a fixed gamma at load 1.0; dotted: adaptive")
    figure.set_size_inches(4 + 2.4 * len(fixed), 6)
    panels = figure.subplots(2, len(fixed), sharex=True, squeeze=False)
    lines = {}
    for column, (case, policies) in enumerate(fixed.items()):
        for row, figure_of in enumerate((p99("ttlt"), mean_latency)):
            axes = panels[row][column]
            bases = dict.fromkeys(name.partition(":")[0] for name in policies)
            for rank, base in enumerate(bases):
                points = sorted(
                    (float(name.rpartition("=")[2]), middle(mine, figure_of))
                    for name, mine in policies.items()
                    if name.startswith(f"{base}:")
                )
                colour = style(rank)["color"]
                (lines[base],) = axes.plot(
                    *zip(*points, strict=True), "o-", markersize=3, color=colour
                )
                own = middle(adaptive(table, case, base), figure_of)
                axes.axhline(own, linestyle=":", color=colour)
            axes.set_xscale("log")
            axes.set_yscale("log")
            _plain_log(axes.yaxis)
            tidy(axes)
        panels[0][column].set_title(case[0], fontsize=9)
        panels[1][column].set_xlabel("gamma (1/s)", fontsize=9)
    panels[0][0].set_ylabel("P99 TTLT (s)")
    panels[1][0].set_ylabel("mean TTLT (s)")
    legend(figure, lines)
    return figure
