"""`sortedf generate`: synthetic traces, calibrated to published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sortedf.atomic import refuse_unwritable
from sortedf.cli.output import JsonOption, print_json
from sortedf.errors import OutputError
from sortedf.generator import KINDS, generate
from sortedf.traces import write_trace

HELP = (
    "Generate a synthetic trace: mix, chat, documents, code or reasoning; with "
    "shared prefixes: system-prompts, document-questions, few-shot, samples or "
    "conversations."
)
EXAMPLE = (
    "Example: sortedf generate mix --n 2000 --long-share 0.2 --seed 1 -o mix.csv; "
    "sortedf generate document-questions --n 2000 --per-prefix 20 -o questions.csv"
)


def command(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}.")],
    n: Annotated[int, typer.Option("--n", help="Number of requests.", min=1)],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write: .csv, .jsonl, ...; by default KIND.csv.",
        ),
    ] = None,
    long_share: Annotated[
        float | None,
        typer.Option(help="Share of long documents in a mix: 0.2.", min=0, max=1),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Poisson arrivals per second; else a backlog."),
    ] = None,
    per_prefix: Annotated[
        int | None,
        typer.Option(
            help="Requests for each shared prefix, on average: 20 questions on a "
            "document.",
            min=1,
        ),
    ] = None,
    turns: Annotated[
        float | None,
        typer.Option(help="Mean number of turns of a conversation: 4.", min=1),
    ] = None,
    think: Annotated[
        float | None,
        typer.Option(
            help="Mean seconds between an answer and the next message of a "
            "conversation: 30.",
            min=0,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Draw the requests and write them."""
    path = Path(f"{kind}.csv") if output is None else output
    if output is None and path.exists():
        raise OutputError(f"{path} exists; give -o {path} to replace it.")
    refuse_unwritable(output)
    trace = generate(
        kind, n, long_share=long_share, rate=rate, seed=seed, per_prefix=per_prefix,
        turns=turns, think_s=think,
    )  # fmt: skip
    write_trace(trace, path)
    if as_json:
        print_json({"n": n, "path": str(path), "kind": kind, "seed": seed})
    else:
        print(f"{path}: {n:,} requests ({kind}, seed {seed})")
