"""The KV usage panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.plotting.canvas import NEUTRAL, count_axis, tidy
from sortedf.plotting.thin import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sortedf.schedule import Schedule

COLOUR = "#3b6ea5"


def draw_usage(axes: Axes, schedule: Schedule) -> None:
    """Draw the KV used and the budget over steps."""
    budget = schedule.instance.kv_budget
    step, used = thin(*schedule.kv_usage())
    axes.fill_between(step, used, color=COLOUR, alpha=0.25, linewidth=0)
    axes.plot(step, used, color=COLOUR, linewidth=0.8, label="KV used")
    axes.axhline(budget, color=NEUTRAL, linewidth=1, linestyle="--", label="budget")
    axes.annotate(
        f"budget {budget:,} tokens",
        (1, budget),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        horizontalalignment="right",
        fontsize=8,
        color=NEUTRAL,
    )
    highest = max(budget, int(used.max()))
    axes.set_ylim(0, 1.2 * highest)
    axes.set_xlabel("step")
    axes.set_ylabel("KV used (tokens)")
    count_axis(axes.yaxis, highest, room=24)
    tidy(axes)
