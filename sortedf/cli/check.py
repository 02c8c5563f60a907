"""`sortedf check`: verify anybody's schedule."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sortedf.checker import CheckReport, check
from sortedf.cli.output import JsonOption, print_json, print_table
from sortedf.cli.problem import LoadedProblem, Problem, takes_problem
from sortedf.errors import TraceError
from sortedf.schedule_file import read_start

HELP = "Verify a schedule independently. Exit code 1 if it breaks a rule."
EXAMPLE = "Example: sortedf check trace.csv schedule.json --kv-budget 16492"


@takes_problem
def command(
    problem: Problem,
    schedule: Annotated[
        Path, typer.Argument(help='JSON with "start", one step for each row.')
    ],
    as_json: JsonOption = False,
) -> None:
    """Check and print; fail where a rule is broken."""
    loaded = problem.read()
    report = check(loaded.instance, _start_of_kept(loaded, schedule))
    if as_json:
        content = {
            "feasible": report.feasible,
            "n": loaded.instance.num_requests,
            "kv_budget": loaded.instance.kv_budget,
            "total_latency": report.tel,
            "makespan": report.makespan,
            "peak_kv": report.peak_kv,
            "num_violations": report.num_violations,
            "violations": [
                {**asdict(found), "message": str(found)} for found in report.violations
            ],
            "dropped": loaded.dropped_rows(),
        }
        print_json(content)
    else:
        _print(loaded, report)
    if not report.feasible:
        raise typer.Exit(1)


def _start_of_kept(loaded: LoadedProblem, path: Path) -> list[int]:
    """Start steps of the instance's requests, from those of the trace's rows."""
    start = read_start(path)
    rows = loaded.trace.num_requests
    if len(start) != rows:
        raise TraceError(
            f"{path} has {len(start)} start steps but {loaded.trace.name} has {rows} "
            "requests; they must be equally many."
        )
    kept = set(loaded.kept.tolist())
    for k, step in enumerate(start):
        if (step is None) == (k in kept):
            row = int(loaded.trace.row[k])
            problem = "has no start step" if step is None else "can never run"
            raise TraceError(
                f"{path}: row {row} of {loaded.trace.name} {problem}; null stands for "
                "the rows that --drop-oversize leaves out, and for no others."
            )
    return [step for step in start if step is not None]


def _print(loaded: LoadedProblem, report: CheckReport) -> None:
    n = loaded.instance.num_requests
    rows = [
        ("feasible", "yes" if report.feasible else "NO"),
        ("mean latency", f"{report.tel / n:,.1f} steps"),
        ("total latency", f"{report.tel:,} steps"),
        ("makespan", f"{report.makespan:,} steps"),
        ("peak KV", f"{report.peak_kv:,} tokens"),
        ("violations", f"{report.num_violations:,}"),
    ]
    print_table(loaded.title(), ("check", ""), rows)
    for found in report.violations:
        print(found)
    if report.num_violations > len(report.violations):
        print(f"and {report.num_violations - len(report.violations):,} more")
