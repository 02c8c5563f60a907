"""`sortedf formats`: the supported trace formats."""

from __future__ import annotations

from sortedf.cli.output import JsonOption, print_entries
from sortedf.traces.format import FORMATS

HELP = "List the trace formats, which are recognised by content."
EXAMPLE = "Example: sortedf formats"
COLUMNS = {"about": "about", "columns": "columns"}


def command(as_json: JsonOption = False) -> None:
    """Print the table of formats."""
    print_entries("trace formats", "format", FORMATS.items(), COLUMNS, as_json=as_json)
