"""`sortedf policies`: the available online policies."""

from __future__ import annotations

from sortedf.cli.output import JsonOption, print_json, print_table

HELP = "List the policies, and the knowledge of answers that each needs."
EXAMPLE = "Example: sortedf policies"


def command(as_json: JsonOption = False) -> None:
    """Print the table of policies with their options."""
    import inspect

    from online.policy import POLICIES

    rows = [
        (name, kind.about, kind.knows, list(inspect.signature(kind.make).parameters))
        for name, kind in POLICIES.items()
        if not kind.needs_plan
    ]
    if as_json:
        keys = ("policy", "about", "knows", "options")
        print_json({"rows": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    table = [(*words, ", ".join(options) or "-") for *words, options in rows]
    print_table(
        "policies; each takes --max-wait as well",
        ("policy", "about", "has to know", "options"),
        table,
        num_text=4,
    )
