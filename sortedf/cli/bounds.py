"""`sortedf bounds`: the available lower bounds."""

from __future__ import annotations

import sortedf
from sortedf.cli.output import JsonOption, print_entries

HELP = "List the lower bounds with their cost, and which of them have a certificate."
EXAMPLE = "Example: sortedf bounds"
COLUMNS = {"about": "about", "cost": "cost", "certified": "certificate"}


def command(as_json: JsonOption = False) -> None:
    """Print the table of bounds."""
    print_entries("bounds", "bound", sortedf.BOUNDS.items(), COLUMNS, as_json=as_json)
