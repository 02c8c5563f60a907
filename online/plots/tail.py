"""Plot of tail latency against UniBoost's gamma."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from online.plots.line_style import legend, style
from sortedf.plotting.canvas import new_figure, settle, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from online.sweep import RunOutcome

    Groups = dict[str, dict[float | None, list[RunOutcome]]]
    """Outcomes by policy and gamma, None for a policy without gamma."""


def plot_gamma(
    outcomes: Sequence[RunOutcome], *, unit: str = "s", title: str | None = None
) -> Figure:
    """Draw P99 and mean TTLT over gamma; other policies are horizontal lines.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Runs with the option `gamma`, and others to compare with.
    unit : str
        Unit of the clock.
    title : str, optional

    Raises
    ------
    ValueError
        If no run has a number as its gamma.
    """
    groups: Groups = {}
    for outcome in outcomes:
        name, gamma = _split(outcome)
        groups.setdefault(name, {}).setdefault(gamma, []).append(outcome)
    if all(set(by_gamma) == {None} for by_gamma in groups.values()):
        raise ValueError("tail against gamma needs runs such as 'uniboost:gamma=0.1'.")
    figure = new_figure(title)
    lines: dict[str, Line2D] = {}
    for axes, tail in zip(
        figure.subplots(1, 2, sharex=True), (True, False), strict=True
    ):
        for rank, (name, by_gamma) in enumerate(groups.items()):
            _draw(axes, by_gamma, tail, rank, lines, name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"gamma (1/{unit})")
        axes.set_ylabel(f"{'P99' if tail else 'mean'} TTLT ({unit})")
        tidy(axes)
    legend(figure, lines)
    settle(figure)
    return figure


def _split(outcome: RunOutcome) -> tuple[str, float | None]:
    """Return the policy's name without gamma, and gamma."""
    policy = outcome.run.policy
    gamma = policy.options.get("gamma")
    if isinstance(gamma, bool) or not isinstance(gamma, int | float):
        return str(policy), None
    rest = {name: value for name, value in policy.options.items() if name != "gamma"}
    return str(type(policy)(policy.name, rest)), float(gamma)


def _draw(
    axes: Axes,
    by_gamma: dict[float | None, list[RunOutcome]],
    tail: bool,
    rank: int,
    lines: dict[str, Line2D],
    name: str,
) -> None:
    def level(outcomes: list[RunOutcome]) -> float:
        return median(
            outcome.metrics.ttlt.p99 if tail and outcome.metrics.ttlt
            else outcome.metrics.mean_latency
            for outcome in outcomes
        )  # fmt: skip

    if None in by_gamma:
        lines[name] = axes.axhline(level(by_gamma[None]), **style(rank))
    x = sorted(gamma for gamma in by_gamma if gamma is not None)
    if x:
        y = [level(by_gamma[gamma]) for gamma in x]
        (lines[name],) = axes.plot(x, y, marker="o", markersize=3, **style(rank))
