"""The one door to matplotlib, and what all figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SIZE = (10.0, 6.0)
"""Width and height of every figure, in inches."""

NEUTRAL = "0.35"
"""Grey of what is no data: budgets, bounds, explanations."""


def matplotlib() -> ModuleType:
    """Load matplotlib without pyplot, which would keep every figure alive.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib: pip install 'sortedf[plot]'"
        ) from error
    return matplotlib


def new_figure(title: str | None) -> Figure:
    """Open a figure of the common size; the title is plain text, wrapped if long."""
    figure: Figure = matplotlib().figure.Figure(figsize=SIZE, layout="constrained")
    if title is not None:
        figure.suptitle(title, fontsize=12, wrap=True, parse_math=False)
    return figure


def settle(figure: Figure) -> None:
    """Lay out a finished figure, once.

    The layout engine starts from where it ended, so with each further drawing the
    axes would move by a hair, and the file's bytes would change.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def tidy(axes: Axes) -> None:
    """Light grid behind the data, no box around it."""
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def count_axis(axis: Axis, largest: int, room: int = 70) -> None:
    """Label an axis with whole numbers such as 12,000.

    `room` is how many characters fit beside each other along the axis.
    """
    ticker = matplotlib().ticker
    num_ticks = min(8, max(2, room // len(f"{largest:,}")))
    axis.set_major_locator(
        ticker.MaxNLocator(num_ticks, integer=True, steps=[1, 2, 5, 10])
    )
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
