"""`sortedf export`: the time-indexed program of a trace, for any solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sortedf.atomic import refuse_unwritable
from sortedf.cli.output import JsonOption, print_json
from sortedf.cli.problem import Problem, takes_problem

HELP = "Write the time-indexed program of a small trace as .lp or .mps, for any solver."
EXAMPLE = "Example: sortedf export trace.csv --kv-budget 64 --backlog -o model.mps"


@takes_problem
def command(
    problem: Problem,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Model to write: .lp or .mps."),
    ],
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Last step in which anything may run; by default no optimal schedule "
            "is left out.",
            min=1,
        ),
    ] = None,
    relaxed: Annotated[
        bool,
        typer.Option("--relaxed", help="Let starts be fractions: an LP."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the program and print its size."""
    from lp.formulation import num_nonzeros
    from lp.textbook import latest_of, write_model

    loaded = problem.read()
    refuse_unwritable(output, inputs=problem.inputs)
    write_model(loaded.instance, output, horizon, integer=not relaxed)
    content = {
        "n": loaded.instance.num_requests,
        "path": str(output),
        "entries": num_nonzeros(loaded.instance, latest_of(loaded.instance, horizon)),
        "dropped": loaded.dropped_rows(),
    }
    if as_json:
        print_json(content)
        return
    print(f"{loaded.title()}\n{output}: {content['entries']:,} entries")
