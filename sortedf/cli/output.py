"""Output of the commands: one JSON object, or text and tables."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(content))


def note(message: str) -> None:
    """Print a note on standard error."""
    print(f"sortedf: {message}", file=sys.stderr)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    num_text: int = 1,
) -> None:
    """Print a table; the first `num_text` columns are text, the others numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for k, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if k < num_text else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    if not console.is_terminal:  # output to a file is not wrapped
        console.width = 200
    print(title)
    console.print(table)


def percent(value: float | None) -> str:
    """Format a gap in percent."""
    return "-" if value is None else f"{value:.2%}"
