"""`sortedf compare`: several methods on one trace, in one table."""

from __future__ import annotations

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
from sortedf.cli.output import JsonOption, note, percent, print_json, print_table
from sortedf.cli.problem import (
    LoadedProblem,
    Problem,
    refuse_for_engines,
    takes_problem,
)
from sortedf.cli.progress import progress
from sortedf.plotting import plot_completions, plot_format, save
from sortedf.result import Result

HELP = "Solve a trace by several methods, with speed-ups and gaps."
EXAMPLE = "Example: sortedf compare trace.csv --kv-budget 16492 --methods fcfs,svf,auto"


@takes_problem
def command(
    problem: Problem,
    methods: Annotated[
        str | None,
        typer.Option(help="Names separated by commas; default: all for this size."),
    ] = None,
    backfill: BackfillOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    bound: BoundOption = "auto",
    jobs: JobsOption = 1,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve by each method, check, and print best first."""
    if plot is not None:
        plot_format(plot)
    if problem.needs_engine_plan:
        from sortedf.cli.engine_plans import compare_plans  # loads the kernels

        refuse_for_engines(jobs=jobs != 1, plot=plot is not None)
        compare_plans(
            problem,
            None if methods is None else _split(methods),
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            bound=bound,
            as_json=as_json,
        )
        return
    loaded = problem.read()
    refuse_unwritable(plot, inputs=problem.inputs)
    names = _names(loaded, methods)
    with progress("methods") as report:
        results = sortedf.compare(
            loaded.instance,
            names,
            backfill=backfill,
            time_limit=time_limit,
            seed=seed,
            bound=bound,
            progress=report,
            jobs=jobs,
        )
    if len(results) < len(names):
        note(f"interrupted; {len(results)} of {len(names)} methods are shown.")
    for result in results:
        loaded.confirm(result)
    fcfs = _fcfs_mean(loaded, results)
    if plot is not None:
        schedules = {result.method: result.schedule for result in results}
        mean = _bound_mean(loaded, results)
        figure = plot_completions(
            schedules, lower_bound_mean=mean, title=loaded.title()
        )
        save(figure, plot)
    if as_json:
        print_json(_as_json(loaded, results, fcfs))
    else:
        _print(loaded, results, fcfs)


def _split(methods: str) -> list[str]:
    """Names as asked for, each once."""
    return list(dict.fromkeys(name.strip() for name in methods.split(",")))


def _names(loaded: LoadedProblem, methods: str | None) -> list[str]:
    """Return the requested names once each; by default all practical at this size."""
    if methods is not None:
        return _split(methods)
    names = sortedf.methods_for(loaded.instance)
    for name, method in sortedf.METHODS.items():
        limit = method.max_requests
        if limit is not None and loaded.instance.num_requests > limit:
            note(f"{name} is for up to {limit:,} requests and left out.")
    return names


def _fcfs_mean(loaded: LoadedProblem, results: list[Result]) -> float:
    """Mean latency of first come, first served with the papers' placement."""
    for result in results:
        if result.method == "fcfs" and result.backfill == 0:
            return result.mean_latency
    return sortedf.solve(loaded.instance, "fcfs", backfill=0, bound="none").mean_latency


def _bound_mean(loaded: LoadedProblem, results: list[Result]) -> float | None:
    bound = results[0].lower_bound
    return None if bound is None else bound / loaded.instance.num_requests


def _as_json(
    loaded: LoadedProblem, results: list[Result], fcfs: float
) -> dict[str, Any]:
    rows = [
        {
            "method": result.method,
            "found_by": result.found_by,
            "backfill": result.backfill,
            "mean_latency": result.mean_latency,
            "total_latency": result.tel,
            "speedup_vs_fcfs": fcfs / result.mean_latency,
            "gap": result.gap,
            "makespan": result.schedule.makespan,
            "peak_kv": result.schedule.peak_kv,
            "status": result.status.value,
            "runtime_s": result.runtime_s,
        }
        for result in results
    ]
    return {
        "n": loaded.instance.num_requests,
        "kv_budget": loaded.instance.kv_budget,
        "unit": "steps",
        "lower_bound": results[0].lower_bound,
        "bound_method": results[0].bound_method,
        "dropped": loaded.dropped_rows(),
        "read": loaded.read,
        "rows": rows,
    }


def _print(loaded: LoadedProblem, results: list[Result], fcfs: float) -> None:
    rows = [
        (
            result.method,
            f"{result.mean_latency:,.1f}",
            f"{fcfs / result.mean_latency:.2f}x",
            percent(result.gap),
            f"{result.schedule.makespan:,}",
            f"{result.schedule.peak_kv:,}",
            "-" if result.backfill is None else str(result.backfill),
            f"{result.runtime_s:.2f} s",
        )
        for result in sorted(results, key=lambda result: result.tel)
    ]
    title = loaded.title()
    mean = _bound_mean(loaded, results)
    if mean is not None:
        bound_method = results[0].bound_method
        title += f"\nno schedule has a mean latency below {mean:,.1f} ({bound_method})"
    columns = ("method", "mean latency", "vs fcfs", "gap", "makespan", "peak KV")
    print_table(title, (*columns, "backfill", "runtime"), rows)
