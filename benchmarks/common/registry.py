"""The description of a benchmark, and discovery of all of them: one file each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
"""The folder `benchmarks`."""

Need = Literal["data", "vllm", "commands"]

Row = dict[str, Any]
"""One measurement, kept as a JSON line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run.

    Attributes
    ----------
    quick : bool
        Small sizes, to see that a benchmark still runs; its figures mean nothing.
    data : Path
        Folder of real traces; benchmarks that need it are skipped with a message if it
        is missing.
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
    needs : tuple of str
        Requirements of a dry run: `data` (real traces), `vllm` (installed),
        `commands` (starts engines as commands of their own, for minutes).
    reads : tuple of str
        Benchmarks whose kept rows it reads.
    """

    title: str
    run: Callable[[Settings], list[Row]]
    page: Callable[[list[Row]], str]
    figures: Callable[[list[Row]], dict[str, Figure]] | None = None
    needs: tuple[Need, ...] = ()
    reads: tuple[str, ...] = ()


def discover() -> dict[str, Spec]:
    """Return every benchmark by its file's name.

    Each file `benchmarks/KIND/NAME.py` is a benchmark and defines a `SPEC`; shared code
    is in `benchmarks/common` and `benchmarks/KIND/parts`. Benchmarks that read the rows
    of others come after them.
    """
    found = {}
    for path in sorted(ROOT.glob("*/*.py")):
        kind, name = path.parent.name, path.stem
        if kind != "common" and name != "__init__":
            if name in found:
                raise ValueError(f"Two benchmarks are called {name}.")
            found[name] = import_module(f"benchmarks.{kind}.{name}").SPEC

    def depth(name: str) -> int:
        return 1 + max(map(depth, found[name].reads), default=0)

    return {name: found[name] for name in sorted(found, key=depth)}


def markdown_table(columns: list[str], rows: list[list[str]]) -> str:
    """Lay out rows as a Markdown table; the first column is text."""
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
