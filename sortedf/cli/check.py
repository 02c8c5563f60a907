"""`sortedf check`: verify a schedule, a certificate, or both."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sortedf
from sortedf.certificate import proven_bound, read_certificate
from sortedf.cli.output import JsonOption, print_json, print_table
from sortedf.cli.problem import Problem, takes_problem

if TYPE_CHECKING:
    from sortedf.checker import CheckReport

HELP = (
    "Verify a schedule, a certificate of a lower bound, or both, independently. "
    "Exit code 1 if a schedule is infeasible or a certificate claims too much."
)
EXAMPLE = "Example: sortedf check trace.csv schedule.json --kv-budget 16492"


@takes_problem
def command(
    problem: Problem,
    schedule: Annotated[
        Path | None, typer.Argument(help='JSON with "start", one step for each row.')
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Prices that prove a lower bound.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check and print; exit with code 1 if a check fails."""
    if schedule is None and certificate is None:
        raise ValueError("give a schedule, or a certificate by --certificate, or both.")
    if problem.needs_engine_plan:
        from sortedf.cli.engine_plans import check_plan_file  # loads the kernels

        check_plan_file(problem, schedule, certificate, as_json=as_json)
        return
    loaded = problem.read()
    content: dict[str, Any] = {
        "n": loaded.instance.num_requests,
        "kv_budget": loaded.instance.kv_budget,
        "dropped": loaded.dropped_rows(),
        "read": loaded.read,
    }
    rows: list[tuple[str, str]] = []
    good = True
    if schedule is not None:
        report = sortedf.check(loaded.instance, loaded.read_start(schedule))
        good = report.feasible
        content |= _schedule_json(report)
        rows += _schedule_rows(report, loaded.instance.num_requests)
    if certificate is not None:
        claim = read_certificate(certificate)
        proven = proven_bound(loaded.instance, claim)
        good = good and claim.bound <= proven
        content |= {
            "lower_bound": proven,
            "claimed_bound": claim.bound,
            "certificate_valid": claim.bound <= proven,
        }
        rows += _certificate_rows(claim.bound, proven, loaded.instance.num_requests)
    if as_json:
        print_json(content)
    else:
        print_table(loaded.title(), ("check", ""), rows)
        if schedule is not None:
            _print_violations(report)
    if not good:
        raise typer.Exit(1)


def _schedule_json(report: CheckReport) -> dict[str, Any]:
    return {
        "feasible": report.feasible,
        "total_latency": report.tel,
        "makespan": report.makespan,
        "peak_kv": report.peak_kv,
        "num_violations": report.num_violations,
        "violations": [
            {**asdict(found), "message": str(found)} for found in report.violations
        ],
    }


def _schedule_rows(report: CheckReport, n: int) -> list[tuple[str, str]]:
    return [
        ("feasible", "yes" if report.feasible else "NO"),
        ("mean latency", f"{report.tel / n:,.1f} steps"),
        ("total latency", f"{report.tel:,} steps"),
        ("makespan", f"{report.makespan:,} steps"),
        ("peak KV", f"{report.peak_kv:,} tokens"),
        ("violations", f"{report.num_violations:,}"),
    ]


def _certificate_rows(claimed: int, proven: int, n: int) -> list[tuple[str, str]]:
    return [
        ("certificate", "valid" if claimed <= proven else "CLAIMS TOO MUCH"),
        ("claimed bound", f"{claimed:,} steps"),
        ("proven bound", f"{proven:,} steps"),
        ("proven mean", f"{proven / n:,.1f} steps"),
    ]


def _print_violations(report: CheckReport) -> None:
    for found in report.violations:
        print(found)
    if report.num_violations > len(report.violations):
        print(f"and {report.num_violations - len(report.violations):,} more")
