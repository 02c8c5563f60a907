"""Plot of planned and observed KV usage of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.plotting.canvas import NEUTRAL, count_axis, new_figure, settle, tidy
from sortedf.plotting.thin import thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from online.run_log import RunLog
    from sortedf.engine_model import EngineModel

OBSERVED, PLANNED = "#3b6ea5", "#d55e00"


def plot_planned(
    log: RunLog, predicted: RunLog, rules: EngineModel, *, title: str | None = None
) -> Figure:
    """Draw the observed and the predicted KV usage, in tokens over steps.

    Parameters
    ----------
    log, predicted : RunLog
        Run of the engine, and its prediction by the step engine.
    rules : EngineModel
    title : str, optional

    Raises
    ------
    ValueError
        If the run has no steps.
    """
    if not log.num_steps:
        raise ValueError("nothing to plot: the run has no steps.")
    figure = new_figure(title)
    axes = figure.subplots()
    budget = rules.num_blocks * rules.block_size
    for run, colour, style, name in (
        (log, OBSERVED, "-", "observed"),
        (predicted, PLANNED, ":", "planned"),
    ):
        held = run.steps.used_blocks * rules.block_size
        step, used = thin(run.steps.end_s, held)
        axes.plot(step, used, color=colour, linestyle=style, linewidth=1, label=name)
    axes.axhline(budget, color=NEUTRAL, linewidth=1, linestyle="--", label="budget")
    axes.set_ylim(0, 1.15 * budget)
    axes.set_xlabel("step")
    axes.set_ylabel("KV held (tokens)")
    count_axis(axes.xaxis, int(np.max(log.steps.end_s)) + 1)
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    tidy(axes)
    settle(figure)
    return figure
