"""Plots of latency distributions: CDFs, and shares of requests above a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.metrics import ttft_s, ttlt_s
from online.plots.line_style import by_policy, legend, style
from online.slo import LIMITED, attainment
from sortedf.plotting.canvas import matplotlib, new_figure, settle, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from online.run_log import RunLog
    from online.sweep import RunOutcome

POINTS = 400
"""Points of each curve."""


def plot_cdfs(
    outcomes: Sequence[RunOutcome], *, unit: str = "s", title: str | None = None
) -> Figure:
    """Draw the CDFs of TTFT and TTLT of each policy over all seeds.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        With their logs.
    unit : str
        Unit of the clock.
    title : str, optional
    """
    logs = _logs(outcomes)
    figure = new_figure(title)
    lines: dict[str, Line2D] = {}
    share = np.linspace(0, 1, POINTS)
    for axes, (name, of) in zip(
        figure.subplots(1, 2, sharey=True),
        (("TTFT", ttft_s), ("TTLT", ttlt_s)),
        strict=True,
    ):
        for rank, (policy, mine) in enumerate(logs.items()):
            seen = np.concatenate([of(log) for log in mine])
            x = np.quantile(seen, share, method="inverted_cdf")
            (lines[policy],) = axes.plot(x, share, **style(rank))
        axes.set_xscale("log")
        axes.set_xlabel(f"{name} ({unit})")
        axes.set_ylim(0, 1)
        axes.set_ylabel("share of requests")
        tidy(axes)
    legend(figure, lines)
    settle(figure)
    return figure


def plot_slo(
    outcomes: Sequence[RunOutcome], *, unit: str = "s", title: str | None = None
) -> Figure:
    """Draw the shares of requests above limits on TTFT, TTLT and TTLT per token.

    The share is on a logarithmic axis: 1 % missed is 99 % attained.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        With their logs.
    unit : str
        Unit of the clock.
    title : str, optional
    """
    logs = _logs(outcomes)
    figure = new_figure(title)
    lines: dict[str, Line2D] = {}
    percent = matplotlib().ticker.FuncFormatter(lambda x, _: f"{100 * x:g} %")
    for axes, what in zip(
        figure.subplots(1, len(LIMITED), sharey=True), LIMITED, strict=True
    ):
        limits = _limits(what, logs)
        for rank, (policy, mine) in enumerate(logs.items()):
            met = np.mean([attainment(log, what, limits) for log in mine], axis=0)
            missed = np.where(met < 1, 1 - met, np.nan)
            (lines[policy],) = axes.plot(limits, missed, **style(rank))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(percent)
        axes.set_xlabel(f"limit on {what} ({unit})")
        axes.set_ylabel("requests that miss it")
        tidy(axes)
    legend(figure, lines)
    settle(figure)
    return figure


def _logs(outcomes: Sequence[RunOutcome]) -> dict[str, list[RunLog]]:
    logs = {
        policy: [outcome.log for outcome in mine if outcome.log is not None]
        for policy, mine in by_policy(outcomes).items()
    }
    if not all(logs.values()):
        raise ValueError("distributions need runs with their logs (keep_logs=True).")
    return logs


def _limits(what: str, logs: dict[str, list[RunLog]]) -> NDArray[np.float64]:
    seen = np.concatenate(
        [LIMITED[what](log) for mine in logs.values() for log in mine]
    )
    low = max(float(np.quantile(seen, 0.01)), 1e-6)
    return np.geomspace(low, max(float(seen.max()), 1.01 * low), POINTS)
