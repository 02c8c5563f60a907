"""Plot of several schedules: completed requests over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.plotting.canvas import NEUTRAL, count_axis, new_figure, settle, tidy
from sortedf.plotting.thin import thin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from sortedf.schedule import Schedule

    Row = tuple[str, float, Line2D]
    """One row of the legend: name, mean latency, curve."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's palette without yellow, for all kinds of colour vision."""

LINE_STYLES = ("-", "--", "-.", ":")
"""Four styles and seven colours: pairs repeat only after 28 methods."""


def plot_completions(
    schedules: Mapping[str, Schedule],
    *,
    lower_bound_mean: float | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the completed requests of several methods over time.

    The legend lists each method's mean latency. For a backlog, a latency is also a
    point in time: each mean is marked on the axis, and the bound is a vertical line.

    Parameters
    ----------
    schedules : mapping of str to Schedule
        By method; the legend sorts them by mean latency.
    lower_bound_mean : float, optional
        Lower bound on the mean latency, in steps.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot; see `save`.

    Raises
    ------
    ValueError
        If there are no schedules, or one has no requests.
    MissingExtraError
        If matplotlib is not installed.
    """
    _refuse_empty(schedules)
    figure = new_figure(title)
    axes = figure.subplots()
    ranked = sorted(schedules.items(), key=lambda item: item[1].mean_latency)
    rows = [
        (name, schedule.mean_latency, _draw_curve(axes, schedule, rank))
        for rank, (name, schedule) in enumerate(ranked)
    ]
    is_backlog = all(schedule.instance.is_backlog for _, schedule in ranked)
    if is_backlog:
        _mark_means(axes, rows)
    if lower_bound_mean is not None:
        bound = _draw_bound(axes, lower_bound_mean, is_backlog)
        rows.insert(0, ("lower bound", lower_bound_mean, bound))
    _set_limits(axes, [schedule for _, schedule in ranked])
    _add_legend(figure, rows, "marked on the axis" if is_backlog else None)
    settle(figure)
    return figure


def completion_curve(
    schedule: Schedule,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the completed requests after each step with a completion.

    The first point is the first arrival, with none completed.
    """
    step, count = np.unique(schedule.completion, return_counts=True)
    first = min(schedule.instance.arrival.min(), schedule.start.min())
    return np.insert(step, 0, first), np.insert(np.cumsum(count), 0, 0)


def _refuse_empty(schedules: Mapping[str, Schedule]) -> None:
    if not schedules:
        raise ValueError("nothing to plot: there are no schedules.")
    for name, schedule in schedules.items():
        if len(schedule.start) == 0:
            raise ValueError(f"nothing to plot: schedule {name!r} has no requests.")


def _draw_curve(axes: Axes, schedule: Schedule, rank: int) -> Line2D:
    # Curves of adjacent ranks are close, so they differ in colour and in style.
    (curve,) = axes.plot(
        *thin(*completion_curve(schedule)),
        drawstyle="steps-post",
        color=COLOURS[rank % len(COLOURS)],
        linestyle=LINE_STYLES[rank % len(LINE_STYLES)],
        linewidth=1.6,
    )
    return curve


def _mark_means(axes: Axes, rows: list[Row]) -> None:
    for _, mean, curve in rows:
        axes.axvline(mean, 0, 0.03, color=curve.get_color(), linewidth=1.6)


def _draw_bound(axes: Axes, bound: float, is_backlog: bool) -> Line2D:
    """Draw the bound for a backlog; otherwise add only its row of the legend."""
    if is_backlog:
        return axes.axvline(bound, color=NEUTRAL, linewidth=1, linestyle=(0, (1, 2)))
    (nothing,) = axes.plot([], [], linestyle="none")
    return nothing


def _set_limits(axes: Axes, schedules: list[Schedule]) -> None:
    last = max(schedule.makespan for schedule in schedules)
    most = max(len(schedule.start) for schedule in schedules)
    axes.margins(x=0.01)
    axes.set_ylim(0, 1.03 * most)
    axes.set_xlabel("step")
    axes.set_ylabel("requests completed")
    count_axis(axes.xaxis, last)
    count_axis(axes.yaxis, most)
    tidy(axes)


def _add_legend(figure: Figure, rows: list[Row], note: str | None) -> None:
    """List names and mean latencies as a table, beside the curves."""
    title = "mean latency (steps)" + (f",\n{note}" if note else "")
    means = [f"{mean:,.1f}" for _, mean, _ in rows]
    name_width = max(len(name) for name, _, _ in rows)
    mean_width = max(map(len, means))
    legend = figure.legend(
        [curve for _, _, curve in rows],
        [
            f"{name:<{name_width}}  {mean:>{mean_width}}"
            for (name, _, _), mean in zip(rows, means, strict=True)
        ],
        loc="outside right upper",
        title=title,
        alignment="left",
        title_fontsize=9,
        prop={"family": "monospace", "size": 8.5},
        handlelength=3,
        frameon=False,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
