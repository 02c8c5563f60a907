"""`sortedf methods`: the available methods."""

from __future__ import annotations

import sortedf
from sortedf.cli.output import JsonOption, print_entries

HELP = "List the methods with their guarantee and cost."
EXAMPLE = "Example: sortedf methods"
COLUMNS = {
    "about": "about",
    "guarantee": "guarantee",
    "cost": "cost",
    "max_requests": None,
}


def command(as_json: JsonOption = False) -> None:
    """Print the table of methods."""
    methods = sortedf.METHODS.items()
    print_entries("methods", "method", methods, COLUMNS, as_json=as_json)
