"""Plot of one run over time: running and waiting requests and KV usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.plotting.canvas import NEUTRAL, count_axis, new_figure, settle, tidy
from sortedf.plotting.thin import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from online.run_log import RunLog
    from sortedf.engine_model import EngineModel

COLOUR = "#3b6ea5"
LOST = "#d55e00"


def plot_timeline(
    log: RunLog, rules: EngineModel, *, unit: str = "s", title: str | None = None
) -> Figure:
    """Draw running and waiting requests and the KV usage over time.

    Steps in which a request lost its KV are marked below the usage.

    Parameters
    ----------
    log : RunLog
    rules : EngineModel
    unit : str
        Unit of the clock.
    title : str, optional

    Raises
    ------
    ValueError
        If the run has no steps.
    """
    if not log.num_steps:
        raise ValueError("nothing to plot: the run has no steps.")
    figure = new_figure(title)
    running, waiting, usage = figure.subplots(3, 1, sharex=True)
    _fill(running, log, log.steps.num_running, "running")
    _fill(waiting, log, log.steps.num_waiting, "waiting")
    budget = rules.num_blocks * rules.block_size
    _fill(usage, log, log.steps.used_blocks * rules.block_size, "KV held (tokens)")
    usage.axhline(budget, color=NEUTRAL, linewidth=1, linestyle="--")
    _mark_losses(usage, log)
    usage.set_xlabel(f"time ({unit})")
    count_axis(usage.xaxis, int(log.steps.end_s[-1]) + 1)
    settle(figure)
    return figure


def _fill(axes: Axes, log: RunLog, count: NDArray[np.int64], name: str) -> None:
    x, y = thin(log.steps.end_s, count)
    axes.fill_between(x, y, color=COLOUR, alpha=0.25, linewidth=0)
    axes.plot(x, y, color=COLOUR, linewidth=0.8)
    axes.set_ylim(0, 1.1 * max(1, int(count.max())))
    axes.set_ylabel(name)
    count_axis(axes.yaxis, max(1, int(count.max())), room=24)
    tidy(axes)


def _mark_losses(axes: Axes, log: RunLog) -> None:
    lost = log.steps.preemptions + log.steps.evictions > 0
    if not lost.any():
        return
    x = log.steps.end_s[lost]
    axes.plot(
        x,
        np.zeros(len(x)),
        "|",
        color=LOST,
        clip_on=False,
        label=f"KV lost in {len(x):,} steps",
    )
    axes.legend(loc="lower right", fontsize=8, frameon=False)
