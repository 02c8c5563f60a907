"""Output of the commands: one JSON object, or text and tables."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    WidthOf = Callable[[int, str], int]

MAX_WIDTH = 200
"""Characters of a line in a file, unless a table of numbers takes more."""

TEXT_WIDTH = 100
"""Characters of a line in a file that has sentences only, which can be wrapped."""

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(content))


def note(message: str) -> None:
    """Print a note on standard error."""
    print(f"sortedf: {message}", file=sys.stderr)


@contextmanager
def standard_output_kept() -> Iterator[None]:
    """Send what libraries and their processes print to standard error meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    num_text: int = 1,
) -> None:
    """Print a table; the first `num_text` columns are text, the others numbers.

    On a terminal that is too narrow sentences are wrapped; where that is not enough,
    each row becomes a list. Names and numbers are never cut.
    """
    from rich.cells import cell_len
    from rich.console import Console

    def longest_word(k: int, text: str) -> int:
        words = text.split() if 0 < k < num_text else [text]
        return max(map(cell_len, words), default=0)

    console = Console(highlight=False, markup=False, emoji=False)
    print(title)
    widths = _widths(columns, rows, lambda k, text: cell_len(text))
    if not console.is_terminal:
        whole = max(MAX_WIDTH, sum(widths) + _frame(len(widths)))
        console.width = TEXT_WIDTH if num_text == len(columns) else whole
    fitted = _fitted(widths, _widths(columns, rows, longest_word), console.width)
    if fitted is None:
        _print_lists(console, columns, rows)
    else:
        console.print(_table(columns, rows, fitted, num_text))


def print_entries(
    title: str,
    kind: str,
    entries: Iterable[tuple[str, Any]],
    columns: Mapping[str, str | None],
    *,
    as_json: bool,
) -> None:
    """Print the entries of a table by name, or one JSON object.

    Parameters
    ----------
    title, kind : str
        Title, and the name of the column of names.
    entries : iterable of (str, object)
        Name and entry.
    columns : mapping of str to str or None
        Heads of columns by attribute of an entry; None for those only in JSON.
    as_json : bool
    """
    rows = [
        {kind: name, **{key: getattr(entry, key) for key in columns}}
        for name, entry in entries
    ]
    if as_json:
        print_json({"rows": rows})
        return
    heads = {kind: kind, **{key: head for key, head in columns.items() if head}}
    cells = [[_cell(row[key]) for key in heads] for row in rows]
    print_table(title, list(heads.values()), cells, num_text=len(heads))


def _cell(value: str | bool | list[str]) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else ", ".join(value) or "-"


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width_of: WidthOf
) -> list[int]:
    """Characters that each column of a table takes."""
    every = (columns, *rows)
    return [max(width_of(k, row[k]) for row in every) for k in range(len(columns))]


def _fitted(natural: list[int], least: list[int], width: int) -> list[int] | None:
    """Narrow the widest columns until the table fits; None if it cannot."""
    fitted = list(natural)
    excess = sum(fitted) + _frame(len(fitted)) - width
    while excess > 0:
        can = [k for k in range(len(fitted)) if fitted[k] > least[k]]
        if not can:
            return None
        fitted[max(can, key=fitted.__getitem__)] -= 1
        excess -= 1
    return fitted


def _frame(num_columns: int) -> int:
    """Characters of a table's line that are in no column."""
    return 3 * num_columns + 1


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: list[int],
    num_text: int,
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for k, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if k < num_text else "right"
        table.add_column(column, justify=justify, width=widths[k])
    for row in rows:
        table.add_row(*row)
    return table


def _print_lists(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print each row under its name, with a line or more for each column."""
    from rich.table import Table

    for name, *values in rows:
        console.print()
        console.print(name)
        lines = Table.grid(padding=(0, 2, 0, 0))
        lines.add_column(no_wrap=True)
        lines.add_column()
        for column, value in zip(columns[1:], values, strict=True):
            lines.add_row(f"  {column}", value)
        console.print(lines)


def percent(value: float | None) -> str:
    """Format a gap in percent."""
    return "-" if value is None else f"{value:.2%}"
