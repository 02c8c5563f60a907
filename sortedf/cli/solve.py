"""`sortedf solve`: one schedule for a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import sortedf
from sortedf.atomic import refuse_unwritable
from sortedf.cli.common_options import (
    BackfillOption,
    BoundOption,
    JobsOption,
    PlotOption,
    SeedOption,
    TimeLimitOption,
)
from sortedf.cli.objective_options import (
    MaxLatencyOption,
    ObjectiveOption,
    P99LatencyOption,
    WeightsOption,
    objective_of,
)
from sortedf.cli.output import JsonOption, note, percent, print_json, print_table
from sortedf.cli.problem import (
    LoadedProblem,
    Problem,
    refuse_for_engines,
    takes_problem,
)
from sortedf.cli.progress import shown
from sortedf.plotting import plot_format, plot_schedule, save
from sortedf.result import Result, gap
from sortedf.schedule_file import write_schedule
from sortedf.stop import AnyOf, Rounds, Stop, TargetGap

HELP = "Schedule a trace, with a proven gap to the best possible schedule."
EXAMPLE = "Example: sortedf solve trace.csv --kv-budget 16492 -o schedule.json"


@takes_problem
def command(
    problem: Problem,
    method: Annotated[str, typer.Option(help="See 'sortedf methods'.")] = "auto",
    backfill: BackfillOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    bound: BoundOption = "auto",
    rounds: Annotated[
        int | None, typer.Option(help="Stop the search after these rounds.", min=0)
    ] = None,
    target_gap: Annotated[
        float | None,
        typer.Option(help="Stop when the gap is at most this: 0.02.", min=0),
    ] = None,
    jobs: JobsOption = 1,
    objective: ObjectiveOption = "tel",
    weights: WeightsOption = None,
    max_latency: MaxLatencyOption = None,
    p99_latency: P99LatencyOption = None,
    start: Annotated[
        Path | None, typer.Option(help="Initial schedule of the search, written by -o.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Schedule to write, as JSON.")
    ] = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve, check, write and print."""
    if plot is not None:
        plot_format(plot)
    if problem.needs_engine_plan:
        from sortedf.cli.engine_plans import solve_plan  # loads the kernels

        refuse_for_engines(
            objective=objective != "tel",
            weights=weights is not None,
            max_latency=max_latency is not None,
            p99_latency=p99_latency is not None,
            start=start is not None,
            rounds=rounds is not None,
            target_gap=target_gap is not None,
            jobs=jobs != 1,
            plot=plot is not None,
        )
        solve_plan(
            problem,
            method,
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            bound=bound,
            output=output,
            as_json=as_json,
        )
        return
    loaded = problem.read()
    refuse_unwritable(output, plot, inputs=(*problem.inputs, weights, start))
    wanted = objective_of(loaded, objective, weights, max_latency, p99_latency)
    first = None
    if start is not None:
        first = sortedf.Schedule(loaded.instance, loaded.read_start(start))
    with shown(f"{method}, requests in groups") as show:
        result = sortedf.solve(
            loaded.instance,
            method,
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            bound=bound,
            progress=show.report,
            stop=_stop(rounds, target_gap),
            start=first,
            jobs=jobs,
            on_better=_noting(show.note, objective, loaded.instance.num_requests),
            objective=wanted,
        )
    loaded.confirm(result)
    if output is not None:
        rows = loaded.trace.num_requests
        write_schedule(result, output, kept=loaded.kept, num_rows=rows)
    if plot is not None:
        save(plot_schedule(result.schedule, title=result.summary()), plot)
    if as_json:
        print_json({**_as_json(loaded, result), "objective": objective})
    else:
        _print(loaded, result, objective)
    if result.over_cap:
        note(
            f"{result.over_cap:,} requests too many exceed the cap on latency; no "
            "schedule within it was found."
        )
        raise typer.Exit(1)


def _stop(rounds: int | None, target_gap: float | None) -> Stop | None:
    rules: list[Stop] = []
    if rounds is not None:
        rules.append(Rounds(rounds))
    if target_gap is not None:
        rules.append(TargetGap(target_gap))
    return AnyOf(*rules) if rules else None


def _noting(
    note: Callable[[str], None], objective: str, n: int
) -> Callable[[int, int | None], None]:
    """Return a function that shows each improved schedule."""

    def better(value: int, bound: int | None) -> None:
        shown = f"{objective} {value:,}"
        if objective == "tel":
            shown = f"mean latency {value / n:,.1f} steps"
        certified = ""
        if bound is not None:
            above = percent(gap(value, bound))
            certified = f", at most {above} above the best possible"
        note(f"{shown}{certified}")

    return better


def _as_json(loaded: LoadedProblem, result: Result) -> dict[str, Any]:
    return {
        "n": loaded.instance.num_requests,
        "kv_budget": loaded.instance.kv_budget,
        "unit": "steps",
        "method": result.method,
        "found_by": result.found_by,
        "backfill": result.backfill,
        "total_latency": result.tel,
        "mean_latency": result.mean_latency,
        "makespan": result.schedule.makespan,
        "max_latency": int(result.schedule.latency.max()),
        "value": result.value,
        "over_cap": result.over_cap,
        "peak_kv": result.schedule.peak_kv,
        "lower_bound": result.lower_bound,
        "bound_method": result.bound_method,
        "gap": result.gap,
        "status": result.status.value,
        "runtime_s": result.runtime_s,
        "dropped": loaded.dropped_rows(),
        "read": loaded.read,
    }


def _print(loaded: LoadedProblem, result: Result, objective: str) -> None:
    n = loaded.instance.num_requests
    placed = "" if result.backfill is None else f", backfill {result.backfill}"
    rows = [
        ("found by", f"{result.found_by}{placed}"),
        ("mean latency", f"{result.mean_latency:,.1f} steps"),
        ("total latency", f"{result.tel:,} steps"),
        ("makespan", f"{result.schedule.makespan:,} steps"),
        ("peak KV", f"{result.schedule.peak_kv:,} tokens"),
    ]
    if result.objective is not None:
        rows.append(("longest latency", f"{result.schedule.latency.max():,} steps"))
    if objective == "weighted-tel":
        rows.append((objective, f"{result.value:,}"))
    if result.lower_bound is not None:
        least = f"{result.lower_bound:,}"
        if objective == "tel":
            least = f"{result.lower_bound / n:,.1f} steps mean"
        rows.append(("lower bound", f"{least} ({result.bound_method})"))
        rows.append(("gap", percent(result.gap)))
    rows.append(("status", result.status.value))
    rows.append(("runtime", f"{result.runtime_s:.2f} s"))
    print_table(loaded.title(), (result.method, ""), rows)
