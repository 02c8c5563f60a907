"""`sortedf methods`: the available methods."""

from __future__ import annotations

import sortedf
from sortedf.cli.output import JsonOption, print_json, print_table

HELP = "List the methods with their guarantee and cost."
EXAMPLE = "Example: sortedf methods"


def command(as_json: JsonOption = False) -> None:
    """Print the table of methods."""
    if as_json:
        rows = [
            {
                "method": name,
                "about": method.about,
                "guarantee": method.guarantee,
                "cost": method.cost,
                "max_requests": method.max_requests,
            }
            for name, method in sortedf.METHODS.items()
        ]
        print_json({"rows": rows})
        return
    table = [
        (name, method.about, method.guarantee, method.cost)
        for name, method in sortedf.METHODS.items()
    ]
    columns = ("method", "about", "guarantee", "cost")
    print_table("methods", columns, table, num_text=4)
