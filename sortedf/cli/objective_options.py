"""Options of the objective, and the file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortedf.arrays import MAX_TOKENS
from sortedf.cli.problem import LoadedProblem
from sortedf.errors import TraceError

if TYPE_CHECKING:
    from sortedf.improve.objective import Objective

NAMES = ("tel", "weighted-tel", "makespan")

MAX_DIGITS = 40
"""Digits of a weight at most; also the digits shown in messages."""

P99 = 0.99
"""Share of the requests that must satisfy --p99-latency."""

ObjectiveOption = Annotated[
    str, typer.Option(help=f"What to minimise: {', '.join(NAMES)}.", metavar="NAME")
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(
        help="For weighted-tel: a text file with one integer per request of the trace, "
        "in its order: the cost of a step of its latency."
    ),
]
MaxLatencyOption = Annotated[
    int | None,
    typer.Option(help="Cap on every request's latency, in steps.", metavar="STEPS"),
]
P99LatencyOption = Annotated[
    int | None,
    typer.Option(
        help="Cap on the latency of 99 % of the requests, in steps.", metavar="STEPS"
    ),
]


def objective_of(
    loaded: LoadedProblem,
    name: str,
    weights: Path | None,
    max_latency: int | None,
    p99_latency: int | None,
) -> Objective | None:
    """Return the objective; None is TEL without a cap.

    Raises
    ------
    ValueError, TraceError
        If options contradict each other, or the weights are invalid.
    """
    from sortedf.improve.objective import Objective  # loads the kernels

    if name not in NAMES:
        raise ValueError(f"--objective {name}: choose one of {', '.join(NAMES)}.")
    if (name == "weighted-tel") != (weights is not None):
        raise ValueError("--objective weighted-tel and --weights FILE go together.")
    if max_latency is not None and p99_latency is not None:
        raise ValueError("--max-latency and --p99-latency: give one of them.")
    for option, cap in ("--max-latency", max_latency), ("--p99-latency", p99_latency):
        if cap is not None and not 1 <= cap <= 2**53:
            raise ValueError(f"{option} {cap}: must be from 1 to 2**53 steps.")
    if name == "tel" and max_latency is None and p99_latency is None:
        return None
    return Objective(
        weight=None if weights is None else _weights(loaded, weights),
        makespan=name == "makespan",
        max_latency=p99_latency if max_latency is None else max_latency,
        share=1.0 if p99_latency is None else P99,
    )


def _weights(loaded: LoadedProblem, path: Path) -> list[int]:
    """Read the weights of the rows, and return those of the instance's requests."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error
    rows = loaded.trace.num_requests
    if len(lines) != rows:
        raise TraceError(
            f"{path} has {len(lines)} lines but {loaded.trace.name} has {rows} "
            "requests; they must be equally many."
        )
    values = []
    for line, text in enumerate(lines, start=1):
        word = text.strip()
        whole = word.isascii() and word.isdigit()
        # int() raises its own error for thousands of digits.
        if not whole or len(word) > MAX_DIGITS or int(word) > MAX_TOKENS:
            shown = word if len(word) <= MAX_DIGITS else f"{word[:MAX_DIGITS]}..."
            raise TraceError(
                f"{path}: line {line}: weight {shown!r} must be an integer from 0 to "
                f"{MAX_TOKENS}."
            )
        values.append(int(word))
    return [values[row] for row in loaded.kept.tolist()]
