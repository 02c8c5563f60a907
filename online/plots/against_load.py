"""Plot of latency against load."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from online.plots.line_style import by_policy, legend, style
from sortedf.plotting.canvas import new_figure, settle, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from online.metrics import Metrics
    from online.sweep import RunOutcome

PANELS: tuple[tuple[str, Callable[[Metrics], float]], ...] = (
    ("mean TTLT", lambda m: m.mean_latency),
    ("P99 TTLT", lambda m: m.ttlt.p99 if m.ttlt else 0.0),
    ("P99 TTFT", lambda m: m.ttft.p99 if m.ttft else 0.0),
)


def plot_load(
    outcomes: Sequence[RunOutcome], *, unit: str = "s", title: str | None = None
) -> Figure:
    """Draw mean and tail latency over the offered load, or over the rate.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Lines are medians over the seeds, bands range from the minimum to the maximum.
    unit : str
        Unit of the clock.
    title : str, optional

    Raises
    ------
    ValueError
        If there are no runs, or a run has neither load nor rate.
    """
    groups = by_policy(outcomes)
    if any(_offered(outcome) is None for outcome in outcomes):
        raise ValueError("latency against load needs runs with a load or a rate.")
    figure = new_figure(title)
    panels = figure.subplots(1, len(PANELS), sharex=True)
    lines: dict[str, Line2D] = {}
    for axes, (name, figure_of) in zip(panels, PANELS, strict=True):
        for rank, (policy, mine) in enumerate(groups.items()):
            lines[policy] = _draw(axes, mine, figure_of, rank)
        axes.set_yscale("log")
        axes.set_title(name, fontsize=10)
        axes.set_ylabel(f"{name} ({unit})")
        has_load = outcomes[0].run.load is not None
        axes.set_xlabel("load" if has_load else "requests per second")
        tidy(axes)
    legend(figure, lines)
    settle(figure)
    return figure


def _offered(outcome: RunOutcome) -> float | None:
    run = outcome.run
    return run.rate if run.load is None else run.load


def _draw(
    axes: Axes,
    outcomes: list[RunOutcome],
    figure_of: Callable[[Metrics], float],
    k: int,
) -> Line2D:
    values: dict[float, list[float]] = {}
    for outcome in outcomes:
        offered = _offered(outcome) or 0.0
        values.setdefault(offered, []).append(figure_of(outcome.metrics))
    x = sorted(values)
    low, high = ([pick(values[load]) for load in x] for pick in (min, max))
    axes.fill_between(x, low, high, color=style(k)["color"], alpha=0.15, linewidth=0)
    (line,) = axes.plot(
        x, [median(values[load]) for load in x], marker="o", markersize=3, **style(k)
    )
    return line
