"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BackfillOption = Annotated[
    int | None,
    typer.Option(
        help="Misfits that placement may pass over in a step; by default 0 for a "
        "named method, and 'auto' chooses.",
        min=0,
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        help="Seconds for a method that can stop early; "
        "in 'solve' a share of them is the bound's.",
        min=0,
    ),
]
JobsOption = Annotated[int, typer.Option(help="Threads of a search.", min=1)]
SeedOption = Annotated[int, typer.Option(help="Seed of all that is random.", min=0)]
BoundOption = Annotated[
    str, typer.Option(help="Lower bound: auto, dual, fluid, lp or none.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Picture to write: .png, .svg or .pdf.")
]
