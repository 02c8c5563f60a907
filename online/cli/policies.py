"""`sortedf policies`: the available online policies."""

from __future__ import annotations

from sortedf.cli.output import JsonOption, print_entries

HELP = "List the policies, and the knowledge of answers that each needs."
EXAMPLE = "Example: sortedf policies"
COLUMNS = {"about": "about", "knows": "has to know", "options": "options"}


def command(as_json: JsonOption = False) -> None:
    """Print the table of policies with their options."""
    from online.policy import POLICIES

    kinds = [(name, kind) for name, kind in POLICIES.items() if not kind.needs_plan]
    title = "policies; each takes --max-wait as well"
    print_entries(title, "policy", kinds, COLUMNS, as_json=as_json)
