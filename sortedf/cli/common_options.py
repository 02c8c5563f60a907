"""Options common to several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

BOUND_NAMES = "{bounds}"
"""Placeholder for the names of all bounds in help texts; see `NamesInHelp`."""

TraceArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV, JSONL, JSON or Parquet, plain or gzip; - for standard input."
    ),
]
StepSecondsOption = Annotated[
    str,
    typer.Option(
        help="Seconds per step, for arrivals; or a file of 'sortedf calibrate' with "
        "steps of constant length.",
        metavar="S",
    ),
]
BacklogOption = Annotated[
    bool, typer.Option("--backlog", help="Ignore arrival times: all arrive at 0.")
]
DropOversizeOption = Annotated[
    bool,
    typer.Option("--drop-oversize", help="Leave out requests that can never run."),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option(help="tokenizer.json or its folder, for traces with texts."),
]
BackfillOption = Annotated[
    int | None,
    typer.Option(
        help="Requests that do not fit and may be passed over in a step; by default 0 "
        "for a named method, and 'auto' chooses.",
        min=0,
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        help="Seconds for a method that can stop early; "
        "in 'solve' the bound takes a share of them.",
        min=0,
    ),
]
JobsOption = Annotated[int, typer.Option(help="Threads of a search.", min=1)]
SeedOption = Annotated[int, typer.Option(help="Seed of all random draws.", min=0)]
BoundOption = Annotated[str, typer.Option(help=f"Lower bound: {BOUND_NAMES} or none.")]
BoundMethodOption = Annotated[
    str, typer.Option(help=f"{BOUND_NAMES}; see 'sortedf bounds'.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Plot to write: .png, .svg or .pdf.")
]


class NamesInHelp(TyperCommand):
    """A command whose help lists the available bounds.

    Loading the table with all plug-ins takes a second, so it is loaded only for help.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Insert the names, then format as usual."""
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and BOUND_NAMES in (
                parameter.help or ""
            ):
                from sortedf import BOUNDS

                names = ", ".join(["auto", *BOUNDS])
                parameter.help = str(parameter.help).replace(BOUND_NAMES, names)
        super().format_help(ctx, formatter)
