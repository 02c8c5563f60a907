"""Pictures of the gain from ranks over their tau_b, in a burst and by load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ranking.parts.rank_worth_case import PAPERS_S
from benchmarks.ranking.parts.rank_worth_page import FIGURES, chosen, gain
from online.plots.line_style import legend, style
from sortedf.plotting.canvas import NEUTRAL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from benchmarks.common.registry import Row


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Draw both."""
    return {"burst": _burst(rows), "loads": _loads(rows)}


def _curve(
    axes: Axes,
    rows: list[Row],
    fcfs: list[Row],
    figure: str,
    rank: int,
    **looks: object,
) -> Line2D:
    """Draw the gain over tau_b."""
    targets = sorted({row["target"] for row in rows})
    gains = [gain(chosen(rows, target=t), fcfs, figure) for t in targets]
    (line,) = axes.plot(targets, gains, **{**style(rank), **looks})
    return line


def panels(figure: Figure) -> list[Axes]:
    """Make one for each figure: times smaller than with FCFS, over tau_b."""
    found = list(figure.subplots(1, len(FIGURES), sharex=True, sharey=True))
    for axes, name in zip(found, FIGURES.values(), strict=True):
        axes.set_yscale("log")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("Kendall's tau_b of the rank")
        axes.axhline(1, color=NEUTRAL, linewidth=0.8)
        ticks = (0.7, 1, 1.5, 2, 3, 5, 7, 10)
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        tidy(axes)
    found[0].set_ylabel("times smaller than with fcfs")
    return found


def _burst(rows: list[Row]) -> Figure:
    noise = chosen(rows, part="noise", load=None)
    figure = new_figure("A burst in order of a rank, against first come first served")
    lines: dict[str, Line2D] = {}
    for axes, key in zip(panels(figure), FIGURES, strict=True):
        for k, name in enumerate(dict.fromkeys(row["workload"] for row in noise)):
            own = chosen(noise, workload=name)
            fcfs, ranks = (chosen(own, order=order) for order in ("fcfs", "rank"))
            for limit, dashes in ((None, "-"), (PAPERS_S, ":")):
                label = name if limit is None else f"{name}, limit {limit:g} s"
                limited = [row for row in ranks if row["limit_s"] == limit]
                lines[label] = _curve(axes, limited, fcfs, key, k, linestyle=dashes)
    legend(figure, lines)
    return figure


def _loads(rows: list[Row]) -> Figure:
    noise = chosen(rows, part="noise")
    name = noise[0]["workload"]
    own = chosen(noise, workload=name)
    figure = new_figure(f"In order of a rank by load, without a limit: {name}")
    lines: dict[str, Line2D] = {}
    for axes, key in zip(panels(figure), FIGURES, strict=True):
        for k, load in enumerate(dict.fromkeys(row["load"] for row in own)):
            here = chosen(own, load=load)
            ranks = chosen(here, order="rank", limit_s=None)
            label = "a burst" if load is None else f"load {load:g}"
            lines[label] = _curve(
                axes,
                ranks,
                chosen(here, order="fcfs"),
                key,
                k,
                marker="o",
                markersize=3,
            )
    legend(figure, lines)
    return figure
