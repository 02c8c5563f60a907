"""Common parts of the plots: a line style per policy, and one legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedf.plotting.completions import COLOURS, LINE_STYLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from online.sweep import RunOutcome


def style(rank: int) -> dict[str, Any]:
    """Colour and line style of the policy at a position in the legend."""
    return {
        "color": COLOURS[rank % len(COLOURS)],
        "linestyle": LINE_STYLES[rank % len(LINE_STYLES)],
        "linewidth": 1.6,
    }


def by_policy(outcomes: Iterable[RunOutcome]) -> dict[str, list[RunOutcome]]:
    """Group outcomes by policy and options, in order of first occurrence."""
    groups: dict[str, list[RunOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(str(outcome.run.policy), []).append(outcome)
    if not groups:
        raise ValueError("nothing to plot: there are no runs.")
    return groups


def legend(figure: Figure, lines: dict[str, Line2D]) -> None:
    """Draw one legend of the policies beside all panels."""
    listed = figure.legend(
        list(lines.values()),
        list(lines),
        loc="outside right upper",
        fontsize=9,
        handlelength=3,
        frameon=False,
    )
    for text in listed.get_texts():
        text.set_parse_math(False)
