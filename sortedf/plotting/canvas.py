"""Import of matplotlib, and settings common to all figures."""

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
"""Grey of reference lines and annotations, such as budgets and bounds."""


def matplotlib() -> ModuleType:
    """Load matplotlib without pyplot, which would keep every figure in memory.

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
    """Lay out a finished figure once and fix the result.

    The layout engine starts from its previous result, so each further drawing would
    move the axes slightly and change the bytes of the file.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def tidy(axes: Axes) -> None:
    """Draw a light grid behind the data and remove the upper and right spines."""
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def count_axis(axis: Axis, largest: int, room: int = 70) -> None:
    """Label an axis with whole numbers such as 12,000.

    `room` is the number of characters that fit along the axis.
    """
    ticker = matplotlib().ticker
    num_ticks = min(8, max(2, room // len(f"{largest:,}")))
    axis.set_major_locator(
        ticker.MaxNLocator(num_ticks, integer=True, steps=[1, 2, 5, 10])
    )
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
