"""Plot of one schedule: a Gantt chart above the KV usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.plotting.canvas import count_axis, matplotlib, new_figure, settle, tidy
from sortedf.plotting.usage import draw_usage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sortedf.schedule import Schedule

    Ints = NDArray[np.int64]

LABELLED = 30
"""Number of requests up to which every bar has a label."""

WAITING_SHOWN = 200
"""Number of requests up to which waiting times are drawn."""

RASTERISED = 5000
"""Number of bars above which vector formats store them as pixels."""


def plot_schedule(schedule: Schedule, *, title: str | None = None) -> Figure:
    """Draw a Gantt chart above the KV usage.

    Each request is a bar from its start to its completion, in the order of starts and
    then completions, coloured by its prefill length. With few requests each bar is
    labelled "id: prefill+decode"; if requests arrive over time, a pale line runs from
    arrival to start.

    Parameters
    ----------
    schedule : Schedule
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot; see `save`.

    Raises
    ------
    ValueError
        If the schedule has no requests.
    MissingExtraError
        If matplotlib is not installed.
    """
    n = len(schedule.start)
    if n == 0:
        raise ValueError("nothing to plot: the schedule has no requests.")
    figure = new_figure(title)
    bars, usage = figure.subplots(2, 1, sharex=True, height_ratios=[2.6, 1])
    order = np.lexsort((schedule.completion, schedule.start))
    _draw_bars(bars, schedule, order)
    if n <= WAITING_SHOWN and not schedule.instance.is_backlog:
        _draw_waiting(bars, schedule, order)
    if n <= LABELLED:
        _draw_labels(bars, schedule, order)
    _set_limits(bars, schedule)
    draw_usage(usage, schedule)
    count_axis(usage.xaxis, schedule.makespan)
    settle(figure)
    return figure


def _draw_bars(axes: Axes, schedule: Schedule, order: Ints) -> None:
    mpl = matplotlib()
    prefill = schedule.instance.prefill
    ticks = _round_numbers(int(prefill.min()), int(prefill.max()))
    bars = mpl.collections.PolyCollection(
        _corners(schedule.start[order], schedule.completion[order]),
        array=prefill[order],
        cmap=_colour_map(),
        norm=mpl.colors.LogNorm(ticks[0], ticks[-1]),
        # Edges keep short bars visible and close the seams between thin ones.
        edgecolors="face",
        linewidths=0.5,
        rasterized=len(order) > RASTERISED,
    )
    axes.add_collection(bars, autolim=False)
    bar = axes.figure.colorbar(bars, ax=axes, pad=0.01, aspect=30)
    bar.set_label("prefill (tokens)")
    bar.set_ticks(ticks)
    bar.ax.yaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def _corners(left: Ints, right: Ints) -> NDArray[np.float64]:
    """Corners of the bars, one row each; shape (n, 4, 2).

    Rows thinner than a pixel would fade, so bars then overlap adjacent rows.
    """
    row = np.arange(len(left))
    half = max(0.4, len(left) / 500)
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([row - half, row - half, row + half, row + half], axis=1)
    return np.stack([x, y], axis=2).astype(np.float64)


def _draw_waiting(axes: Axes, schedule: Schedule, order: Ints) -> None:
    arrival, start = schedule.instance.arrival[order], schedule.start[order]
    row = np.arange(len(order))
    axes.hlines(
        row, arrival, start, color="0.8", linewidth=1, zorder=0.9, label="waiting"
    )
    # Above the axes: every corner inside can be covered by bars.
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        frameon=False,
        fontsize=8,
    )


def _draw_labels(axes: Axes, schedule: Schedule, order: Ints) -> None:
    s, o = schedule.instance.prefill, schedule.instance.decode
    for row, i in enumerate(order.tolist()):
        axes.annotate(
            f"{i}: {s[i]:,}+{o[i]:,}",
            (schedule.completion[i], row),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center_baseline",
            fontsize=8,
        )


def _set_limits(axes: Axes, schedule: Schedule) -> None:
    n = len(schedule.start)
    first = int(min(schedule.start.min(), schedule.instance.arrival.min()))
    span = schedule.makespan - first
    margin = 0.16 if n <= LABELLED else 0.01  # room for the last bar's label
    axes.set_xlim(first - 0.01 * span, schedule.makespan + margin * span)
    spare = max(0.0, (8 - n) / 2)  # keeps few bars from filling the axes
    axes.set_ylim(n - 0.5 + spare, -0.5 - spare)
    axes.set_ylabel("requests, by start")
    if n <= LABELLED:
        axes.set_yticks([])  # the labels name the rows
    else:
        count_axis(axes.yaxis, n)
    tidy(axes)


def _colour_map() -> Colormap:
    """Viridis reversed, without its yellow end, which is hard to see on white."""
    mpl = matplotlib()
    colours = mpl.colormaps["viridis_r"](np.linspace(0.15, 1, 256))
    dark_on_white: Colormap = mpl.colors.ListedColormap(colours)
    return dark_on_white


def _round_numbers(shortest: int, longest: int) -> list[int]:
    """Ticks that enclose the lengths: 1, 2, 5, 10, ..., or powers of ten if too many.

    At least two, so that equal lengths also have a scale.
    """
    grid = [m * 10**k for k in range(11) for m in (1, 2, 5)]
    low = int(np.searchsorted(grid, shortest, side="right")) - 1
    high = max(low + 1, int(np.searchsorted(grid, longest)))
    ticks = grid[low : high + 1]
    if len(ticks) <= 10:
        return ticks
    decades = [tick for tick in ticks[1:-1] if str(tick).strip("0") == "1"]
    return [ticks[0], *decades, ticks[-1]]
