"""`sortedf bound`: a lower bound on the latency of every schedule."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sortedf
from sortedf.atomic import refuse_unwritable
from sortedf.certificate import write_certificate
from sortedf.cli.common_options import BoundMethodOption, TimeLimitOption
from sortedf.cli.output import JsonOption, print_json, print_table
from sortedf.cli.problem import Problem, refuse_for_engines, takes_problem
from sortedf.cli.progress import progress

if TYPE_CHECKING:
    from sortedf.instance import Instance

HELP = "Prove a lower bound on the latency of every schedule of a trace."
EXAMPLE = (
    "Example: sortedf bound trace.csv --kv-budget 16492 --method dual "
    "--certificate proof.json"
)


@takes_problem
def command(
    problem: Problem,
    method: BoundMethodOption = "auto",
    time_limit: TimeLimitOption = None,
    target_gap: Annotated[
        float | None,
        typer.Option(
            help="Stop when the gap of the best list is at most this: 0.05.", min=0
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="File for the certificate of the bound.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the bound, write its certificate and print it."""
    if problem.needs_engine_plan:
        from sortedf.cli.engine_plans import bound_workload  # loads the kernels

        refuse_for_engines(target_gap=target_gap is not None)
        bound_workload(problem, method, certificate=certificate, as_json=as_json)
        return
    loaded = problem.read()
    refuse_unwritable(certificate, inputs=problem.inputs)
    if certificate is not None:
        _refuse_uncertified(method)
    with progress(f"{method} bound so far, total latency in steps") as report:
        found = sortedf.bound(
            loaded.instance,
            method,
            time_limit=time_limit,
            target=_target(loaded.instance, target_gap),
            progress=report,
            certified=certificate is not None,
        )
    if certificate is not None:
        if found.certificate is None:
            raise ValueError(f"--certificate: the bound {found.method!r} has none.")
        write_certificate(found.certificate, certificate)
    n = loaded.instance.num_requests
    if as_json:
        content = {
            "n": n,
            "kv_budget": loaded.instance.kv_budget,
            "unit": "steps",
            "lower_bound": found.value,
            "mean_lower_bound": found.value / n,
            "method": found.method,
            "runtime_s": found.runtime_s,
            "certificate": None if certificate is None else str(certificate),
            "dropped": loaded.dropped_rows(),
            "read": loaded.read,
        }
        print_json(content)
        return
    rows = [
        ("total latency", f"{found.value:,} steps"),
        ("mean latency", f"{found.value / n:,.1f} steps"),
        ("runtime", f"{found.runtime_s:.2f} s"),
    ]
    print_table(loaded.title(), (f"lower bound, {found.method}", ""), rows)


def _refuse_uncertified(method: str) -> None:
    """Raise if a bound has no certificate; the message lists those that have."""
    from sortedf.bounds.table import bound_method, certified_bounds  # loads the kernels

    if method != "auto" and not bound_method(method).certified:
        names = ", ".join(certified_bounds())
        raise ValueError(
            f"--certificate: the bound {method!r} has none; choose one of: {names}."
        )


def _target(instance: Instance, gap: float | None) -> int | None:
    """Return the bound at which the best list has the given gap."""
    if gap is None:
        return None
    if not math.isfinite(gap):
        raise ValueError(f"--target-gap {gap}: must be a finite number, 0 or more.")
    listed = sortedf.solve(instance, "best-list", bound="none")
    return math.ceil(listed.tel / (1 + Fraction(gap)))
