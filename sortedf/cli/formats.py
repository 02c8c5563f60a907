"""`sortedf formats`: the supported trace formats."""

from __future__ import annotations

from sortedf.cli.output import JsonOption, print_json, print_table
from sortedf.traces.format import FORMATS

HELP = "List the trace formats, which are recognised by content."
EXAMPLE = "Example: sortedf formats"


def command(as_json: JsonOption = False) -> None:
    """Print the table of formats."""
    rows = [(name, known.about, known.columns) for name, known in FORMATS.items()]
    columns = ("format", "about", "columns")
    if as_json:
        print_json({"rows": [dict(zip(columns, row, strict=True)) for row in rows]})
        return
    print_table("trace formats", columns, rows, num_text=3)
