"""`sortedf bound`: a lower bound on what any schedule can reach."""

from __future__ import annotations

from typing import Annotated

import typer

from sortedf.bounds import bound
from sortedf.cli.output import JsonOption, print_json, print_table
from sortedf.cli.problem import Problem, takes_problem

HELP = "Prove a lower bound on the latency of every schedule of a trace."
EXAMPLE = "Example: sortedf bound trace.csv --kv-budget 16492 --method fluid"


@takes_problem
def command(
    problem: Problem,
    method: Annotated[str, typer.Option(help="auto or fluid.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Compute the bound and print it."""
    loaded = problem.read()
    found = bound(loaded.instance, method)
    n = loaded.instance.num_requests
    if as_json:
        content = {
            "n": n,
            "kv_budget": loaded.instance.kv_budget,
            "lower_bound": found.value,
            "mean_lower_bound": found.value / n,
            "method": found.method,
            "runtime_s": found.runtime_s,
            "dropped": loaded.dropped_rows(),
        }
        print_json(content)
        return
    rows = [
        ("total latency", f"{found.value:,} steps"),
        ("mean latency", f"{found.value / n:,.1f} steps"),
        ("runtime", f"{found.runtime_s:.2f} s"),
    ]
    print_table(loaded.title(), (f"lower bound, {found.method}", ""), rows)
