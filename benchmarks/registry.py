"""Frozen benchmark specs that register themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sortedf.registry import register

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

Row = dict[str, Any]
"""One measurement, as it is kept in a JSON line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a benchmark is run.

    Attributes
    ----------
    quick : bool
        Small sizes, to see that a benchmark still runs; its figures mean nothing.
    data : Path
        Folder of real traces; what needs it is skipped, and says so, without it.
    results : Path
        Folder of the pages; long benchmarks keep unfinished rows there.
    """

    quick: bool
    data: Path
    results: Path = Path("benchmarks/results")

    def pick(self, full: int, quick: int) -> int:
        """Return `full`, or `quick` in quick mode."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Spec:
    """One benchmark.

    Attributes
    ----------
    title : str
    run : callable
        Measures; returns raw rows.
    page : callable
        Turns raw rows into the body of a Markdown page.
    figures : callable, optional
        Turns raw rows into figures by name, for the page; needs matplotlib.
    """

    title: str
    run: Callable[[Settings], list[Row]]
    page: Callable[[list[Row]], str]
    figures: Callable[[list[Row]], dict[str, Figure]] | None = None


SPECS: dict[str, Spec] = {}
"""Every benchmark by name."""


def add(name: str, spec: Spec) -> None:
    """Enter a benchmark."""
    register(SPECS, "benchmark", name)(spec)


def markdown_table(columns: list[str], rows: list[list[str]]) -> str:
    """Lay out rows as a Markdown table; the first column is text."""
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
