"""The commands for engines that cut prompts or whose steps differ in length."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sortedf.atomic import refuse_unwritable
from sortedf.bounds.seconds import SecondsBound, seconds_bound
from sortedf.cli.output import note, percent, print_json, print_table
from sortedf.cli.progress import shown
from sortedf.engine_plan.plan_checker import PlanReport, check_plan
from sortedf.engine_plan.plan_file import (
    prove_in_seconds,
    read_plan,
    read_seconds_certificate,
    write_plan,
    write_seconds_certificate,
)
from sortedf.engine_plan.planning import PlanFound, plan_engine
from sortedf.engine_plan.seconds_certificate import UNITS
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import OversizeError, TraceError
from sortedf.result import Status
from sortedf.step_time import UNIT_STEPS, step_time_of
from sortedf.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sortedf.cli.problem import Problem

NAMED = 5
"""Largest number of requests that can never run named in a message."""

COMPARED = ("fcfs", "mc-sf", "svf", "sorted-f", "least-work", "auto")
"""Methods compared if none are named."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedWorkload:
    """A trace, its workload, the positions of its requests, and what was read."""

    trace: Trace
    workload: EngineWorkload
    kept: NDArray[np.int64]
    read: dict[str, Any]

    @property
    def unit(self) -> str:
        """Unit of latencies."""
        return "steps" if self.workload.step_times == (UNIT_STEPS,) else "seconds"

    @property
    def short(self) -> str:
        """Abbreviation of the unit."""
        return "steps" if self.unit == "steps" else "s"

    def about(self) -> dict[str, Any]:
        """Return the fields of the problem common to all JSON output."""
        return {
            "n": self.workload.num_requests,
            "kv_budget": self.workload.rules.kv_budget,
            "unit": self.unit,
            "dropped": np.delete(self.trace.row, self.kept).tolist(),
            "read": self.read,
        }

    def title(self) -> str:
        """Title of the output: trace, number of requests and engine."""
        dropped = self.trace.num_requests - len(self.kept)
        left_out = f", {dropped:,} that can never run left out" if dropped else ""
        return (
            f"{self.trace.name}: {len(self.kept):,} requests, "
            f"{self.workload.rules}{left_out}"
        )

    def read_plan(self, path: Path) -> tuple[list[int], list[int]]:
        """Read a plan of the trace: start steps by request, and ids in order."""
        start, position, engine = read_plan(path)
        if engine and engine != asdict(self.workload.rules):
            note(f"{path} was made for another engine; it is checked for this one.")
        rows = self.trace.num_requests
        if not len(start) == len(position) == rows:
            raise TraceError(
                f"{path} has {len(start)} starts and {len(position)} positions but "
                f"{self.trace.name} has {rows} requests; they must be equally many."
            )
        kept = set(self.kept.tolist())
        for k, pair in enumerate(zip(start, position, strict=True)):
            if any((value is None) == (k in kept) for value in pair):
                row = int(self.trace.row[k])
                problem = "is not planned" if k in kept else "can never run"
                raise TraceError(
                    f"{path}: row {row} of {self.trace.name} {problem}; null stands "
                    "for the rows that --drop-oversize leaves out, and for no others."
                )
        steps = [step for step in start if step is not None]
        places = np.array([place for place in position if place is not None])
        return steps, np.argsort(places, kind="stable").tolist()


def load_workload(problem: Problem) -> LoadedWorkload:
    """Read the trace and check every request against the engine's rules."""
    engine = problem.engine_model()
    if engine.prefix_caching:
        note("prefix caching is left out of plans: every prompt is computed in full.")
        engine = replace(engine, prefix_caching=False)
    step_time = step_time_of(problem.step_time)
    file = problem.read_file()
    trace = file.trace
    pairs = zip(trace.prefill.tolist(), trace.decode.tolist(), strict=True)
    why = {k: text for k, p in enumerate(pairs) if (text := engine.refusal(*p))}
    if why and (not problem.drop_oversize or len(why) == trace.num_requests):
        named = "; ".join(
            f"row {trace.row[k]} {text}" for k, text in list(why.items())[:NAMED]
        )
        way = "--drop-oversize leaves them out"
        end = "none is left" if problem.drop_oversize else way
        raise OversizeError(
            f"{trace.name}: {len(why)} of {trace.num_requests} requests can never run: "
            f"{named}; {end}.",
            tuple(why),
        )
    kept = np.delete(np.arange(trace.num_requests), list(why))
    arrival_s = None if problem.backlog else trace.arrival_s[kept]
    workload = EngineWorkload(
        trace.prefill[kept], trace.decode[kept], engine, (step_time,), arrival_s
    )
    file.say(engine, step_time)
    return LoadedWorkload(trace, workload, kept, file.about(engine, step_time))


def solve_plan(
    problem: Problem,
    method: str,
    *,
    backfill: int | None,
    time_limit: float | None,
    seed: int,
    bound: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan, check, write and print."""
    loaded = load_workload(problem)
    refuse_unwritable(output, inputs=problem.inputs)
    least = _bound(loaded, bound)
    with shown(f"{method}, an order for the engine") as show:
        found = plan_engine(
            loaded.workload,
            method,
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            prices=None if least is None else least.prices,
            on_better=lambda total: show.note(_so_far(loaded, total, least)),
        )
    report = _confirm(loaded, found)
    if output is not None:
        rows = loaded.trace.num_requests
        write_plan(found, output, kept=loaded.kept, num_rows=rows)
    row = _row(loaded, found, report, least)
    if as_json:
        print_json({**loaded.about(), **row})
        return
    lines = [
        ("found by", f"{found.found_by}, backfill {found.plan.admission.backfill}"),
        ("mean latency", f"{row['mean_latency']:,.2f} {loaded.short}"),
        ("total latency", f"{row['total_latency']:,.1f} {loaded.short}"),
        ("makespan", f"{row['makespan']:,.1f} {loaded.short}"),
        ("steps", f"{row['steps']:,}"),
        ("peak KV", f"{row['peak_kv']:,} tokens"),
    ]
    if least is not None:
        mean = least.total_s / loaded.workload.num_requests
        lines.append(
            ("lower bound", f"{mean:,.2f} {loaded.short} mean ({least.method})")
        )
        lines.append(("gap", percent(row["gap"])))
    lines.append(("status", row["status"]))
    lines.append(("runtime", f"{found.runtime_s:.2f} s"))
    print_table(loaded.title(), (method, ""), lines)


def compare_plans(
    problem: Problem,
    methods: Sequence[str] | None,
    *,
    backfill: int | None,
    time_limit: float | None,
    seed: int,
    bound: str,
    as_json: bool,
) -> None:
    """Plan by each method, check, and print best first."""
    loaded = load_workload(problem)
    least = _bound(loaded, bound)
    rows = []
    for method in dict.fromkeys(["fcfs", *(methods or COMPARED)]):
        found = plan_engine(
            loaded.workload,
            method,
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            prices=None if least is None else least.prices,
        )
        rows.append(_row(loaded, found, _confirm(loaded, found), least))
    fcfs = rows[0]["mean_latency"]
    if methods is not None and "fcfs" not in methods:
        del rows[0]
    for row in rows:
        row["speedup_vs_fcfs"] = fcfs / row["mean_latency"]
    if as_json:
        shared = ("lower_bound", "bound_method")
        content = {**loaded.about(), **{key: rows[0][key] for key in shared}}
        plain = [{k: v for k, v in row.items() if k not in shared} for row in rows]
        print_json({**content, "rows": plain})
        return
    title = loaded.title()
    if least is not None:
        mean = least.total_s / loaded.workload.num_requests
        title += (
            f"\nno schedule has a mean latency below {mean:,.2f} {loaded.short} "
            f"({least.method})"
        )
    columns = ("method", f"mean latency ({loaded.short})", "vs fcfs", "gap", "steps")
    lines = [
        (
            row["method"],
            f"{row['mean_latency']:,.2f}",
            f"{row['speedup_vs_fcfs']:.2f}x",
            percent(row["gap"]),
            f"{row['steps']:,}",
            f"{row['peak_kv']:,}",
            f"{row['runtime_s']:.2f} s",
        )
        for row in sorted(rows, key=lambda row: row["mean_latency"])
    ]
    print_table(title, (*columns, "peak KV", "runtime"), lines)


def bound_workload(
    problem: Problem, method: str, *, certificate: Path | None, as_json: bool
) -> None:
    """Compute the bound, write its certificate and print it."""
    loaded = load_workload(problem)
    refuse_unwritable(certificate, inputs=problem.inputs)
    found = _bound(loaded, method)
    if found is None:
        raise ValueError("--method none: there is nothing to prove.")
    if certificate is not None:
        write_seconds_certificate(found.certificate, certificate)
    mean = found.total_s / loaded.workload.num_requests
    if as_json:
        content = {
            **loaded.about(),
            "lower_bound": found.total_s,
            "mean_lower_bound": mean,
            "method": found.method,
            "runtime_s": found.runtime_s,
            "certificate": None if certificate is None else str(certificate),
        }
        print_json(content)
        return
    rows = [
        ("total latency", f"{found.total_s:,.1f} {loaded.short}"),
        ("mean latency", f"{mean:,.2f} {loaded.short}"),
        ("runtime", f"{found.runtime_s:.2f} s"),
    ]
    print_table(loaded.title(), (f"lower bound, {found.method}", ""), rows)


def check_plan_file(
    problem: Problem, schedule: Path | None, certificate: Path | None, *, as_json: bool
) -> None:
    """Check and print; fail if a rule is broken or a certificate claims too much."""
    loaded = load_workload(problem)
    content, rows, good = loaded.about(), [], True
    if schedule is not None:
        report = check_plan(loaded.workload, *loaded.read_plan(schedule))
        good = report.feasible
        content |= {
            "feasible": good,
            "total_latency": report.total_s,
            "steps": report.num_steps,
            "peak_kv": report.peak_blocks * loaded.workload.rules.block_size,
            "num_violations": report.num_violations,
            "violations": [{"message": text} for text in report.violations],
        }
        rows.append(("feasible", "yes" if good else "NO"))
        if report.total_s is not None:
            mean = report.total_s / loaded.workload.num_requests
            rows.append(("mean latency", f"{mean:,.2f} {loaded.short}"))
        rows.append(("steps", f"{report.num_steps:,}"))
        rows.append(("violations", f"{report.num_violations:,}"))
    if certificate is not None:
        claim = read_seconds_certificate(certificate)
        proven = prove_in_seconds(loaded.workload, claim)
        valid = claim.bound <= proven
        good = good and valid
        content |= {
            "lower_bound": proven / UNITS,
            "claimed_bound": claim.bound / UNITS,
            "certificate_valid": valid,
        }
        rows.append(("certificate", "valid" if valid else "CLAIMS TOO MUCH"))
        rows.append(("claimed bound", f"{claim.bound / UNITS:,.1f} {loaded.short}"))
        rows.append(("proven bound", f"{proven / UNITS:,.1f} {loaded.short}"))
    if as_json:
        print_json(content)
    else:
        print_table(loaded.title(), ("check", ""), rows)
        for text in content.get("violations", []):
            print(text["message"])
    if not good:
        raise typer.Exit(1)


def _bound(loaded: LoadedWorkload, method: str) -> SecondsBound | None:
    if method == "none":
        return None
    if method not in ("auto", "seconds"):
        raise ValueError(
            f"the bound {method!r} is for equal steps and whole prompts; for this "
            "engine choose one of: auto, seconds, none."
        )
    return seconds_bound(loaded.workload)


def _confirm(loaded: LoadedWorkload, found: PlanFound) -> PlanReport:
    """Check a plan independently before it is shown."""
    report = check_plan(
        loaded.workload, found.plan.start.tolist(), found.plan.order.tolist()
    )
    total_s = report.total_s
    if total_s is None or not np.isclose(total_s, found.plan.total_s, rtol=1e-9):
        raise RuntimeError(
            f"{found.method} gave a plan that the checker refuses: {report}"
        )
    return report


def _row(
    loaded: LoadedWorkload,
    found: PlanFound,
    report: PlanReport,
    least: SecondsBound | None,
) -> dict[str, Any]:
    plan = found.plan
    status = Status.FEASIBLE if found.complete else Status.TIME_LIMIT
    below = None if least is None else least.total_s
    if below is not None and plan.total_s <= below * (1 + 1e-9):
        status = Status.OPTIMAL
    return {
        "method": found.method,
        "found_by": found.found_by,
        "backfill": plan.admission.backfill,
        "total_latency": plan.total_s,
        "mean_latency": plan.mean_s,
        "makespan": float(plan.completion_s.max(initial=0.0)),
        "max_latency": float(plan.latency_s.max(initial=0.0)),
        "steps": plan.num_steps,
        "peak_kv": report.peak_blocks * loaded.workload.rules.block_size,
        "lower_bound": below,
        "bound_method": "none" if least is None else least.method,
        "gap": None if below is None else _gap(plan.total_s, below),
        "status": status.value,
        "runtime_s": found.runtime_s,
    }


def _gap(total_s: float, below: float) -> float:
    """Relative distance from the bound; rounding errors of the clock count as 0."""
    return max(0.0, (total_s - below) / below) if below else 0.0


def _so_far(loaded: LoadedWorkload, total_s: float, least: SecondsBound | None) -> str:
    mean = total_s / loaded.workload.num_requests
    text = f"mean latency {mean:,.2f} {loaded.short}"
    if least is not None:
        gap = percent(_gap(total_s, least.total_s))
        text += f", at most {gap} above the best possible"
    return text
