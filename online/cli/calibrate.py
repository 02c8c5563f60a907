"""`sortedf calibrate`: a step-time model from an engine's log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sortedf.atomic import refuse_unwritable
from sortedf.cli.output import JsonOption, print_json, print_table

HELP = "Fit a step-time model to an engine's log: constant, prompt tokens, ..."
EXAMPLE = "Example: sortedf calibrate steps.jsonl -o model.json"


def command(
    log: Annotated[
        Path,
        typer.Argument(
            help="JSON lines with prefill_tokens, num_decoding, kv_tokens and "
            "duration_s, one for each step."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Model to write, for --step-time."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit, write and print."""
    from online.calibration import calibrate, read_samples
    from sortedf.step_time import write_step_time

    refuse_unwritable(output, inputs=[log])
    found = calibrate(read_samples(log))
    content = found.as_dict()
    if output is not None:
        extra = {name: content[name] for name in ("num_steps", "r_squared")}
        extra["residual_s"] = found.residual_s
        write_step_time(found.step_time, output, **extra)
    if as_json:
        print_json({"path": None if output is None else str(output), **content})
        return
    model = found.step_time
    rows = [
        ("constant", f"{model.constant_s * 1e3:,.4f} ms"),
        ("per prompt token", f"{model.prefill_token_s * 1e6:,.4f} µs"),
        ("per decoding request", f"{model.running_s * 1e6:,.4f} µs"),
        ("per 1,000 KV tokens", f"{model.kv_token_s * 1e9:,.4f} µs"),
        ("variance explained", f"{found.r_squared:.2%}"),
    ]
    rows += [
        (f"|residual| {name}", f"{value * 1e3:,.4f} ms")
        for name, value in found.residual_s.items()
    ]
    print_table(f"{log}: {found.num_steps:,} steps", ("step time", ""), rows)
