"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

BOUND_NAMES = "{bounds}"
"""Stands for the names of all bounds, which only the help needs: `NamesInHelp`."""

TraceArgument = Annotated[
    Path, typer.Argument(help="CSV, JSONL, JSON or Parquet, gzipped or not.")
]
KvBudgetOption = Annotated[
    str | None,
    typer.Option(help="KV cache of the engine, in tokens. Required.", metavar="M"),
]
BlockSizeOption = Annotated[int, typer.Option(help="Tokens per KV block.", min=1)]
MaxNumSeqsOption = Annotated[
    int | None, typer.Option(help="Most requests that run at once.", min=1)
]
MaxBatchedTokensOption = Annotated[
    int | None, typer.Option(help="Most tokens in one step.", min=1)
]
StepSecondsOption = Annotated[
    str,
    typer.Option(
        help="Seconds per step, for arrivals; or a file of 'sortedf calibrate' whose "
        "steps are all equally long.",
        metavar="S",
    ),
]
BacklogOption = Annotated[
    bool, typer.Option("--backlog", help="Ignore arrival times: all are there.")
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
BoundOption = Annotated[str, typer.Option(help=f"Lower bound: {BOUND_NAMES} or none.")]
BoundMethodOption = Annotated[
    str, typer.Option(help=f"{BOUND_NAMES}; see 'sortedf bounds'.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Picture to write: .png, .svg or .pdf.")
]


class NamesInHelp(TyperCommand):
    """A command whose help lists the bounds that there are.

    The table with all plug-ins takes a second to load: not when a command is defined.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Put the names where they belong, and go on as usual."""
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and BOUND_NAMES in (
                parameter.help or ""
            ):
                from sortedf import BOUNDS

                names = ", ".join(["auto", *BOUNDS])
                parameter.help = str(parameter.help).replace(BOUND_NAMES, names)
        super().format_help(ctx, formatter)
