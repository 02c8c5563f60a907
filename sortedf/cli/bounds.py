"""`sortedf bounds`: the available lower bounds."""

from __future__ import annotations

import sortedf
from sortedf.cli.output import JsonOption, print_json, print_table

HELP = "List the lower bounds with their cost, and which of them have a certificate."
EXAMPLE = "Example: sortedf bounds"


def command(as_json: JsonOption = False) -> None:
    """Print the table of bounds."""
    if as_json:
        rows = [
            {
                "bound": name,
                "about": bound.about,
                "cost": bound.cost,
                "certified": bound.certified,
            }
            for name, bound in sortedf.BOUNDS.items()
        ]
        print_json({"rows": rows})
        return
    table = [
        (name, bound.about, bound.cost, "yes" if bound.certified else "no")
        for name, bound in sortedf.BOUNDS.items()
    ]
    columns = ("bound", "about", "cost", "certificate")
    print_table("bounds", columns, table, num_text=4)
