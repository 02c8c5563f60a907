"""`sortedf simulate`: simulation of online policies."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from online.cli.simulation import Simulation
from sortedf.atomic import refuse_unwritable
from sortedf.cli.common_options import PlotOption
from sortedf.cli.output import JsonOption, note, percent, print_json, print_table
from sortedf.cli.problem import takes_problem
from sortedf.cli.progress import progress
from sortedf.plotting import plot_format, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from online.named import Named
    from online.sweep import Run, RunOutcome, Setting

HELP = "Simulate serving policies while requests arrive, by vLLM's rules."
EXAMPLE = (
    "Example: sortedf simulate trace.csv --kv-budget 16492 --policy fcfs,svf "
    "--load 0.7,1.0,1.3 --seeds 3 --plot load.png"
)

PLOTS = ("auto", "load", "cdf", "slo", "gamma", "timeline")


@takes_problem
def command(
    simulation: Simulation,
    policy: Annotated[
        str,
        typer.Option(
            help="Names separated by commas, with options: uniboost:gamma=0.5; see "
            "'sortedf policies'."
        ),
    ] = "fcfs",
    rate: Annotated[
        float | None, typer.Option(help="Mean requests per second.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            help="Instead of a rate: offered load; at 1, work arrives as fast as a "
            "full cache can serve it. Several separated by commas."
        ),
    ] = None,
    speed_up: Annotated[
        float | None,
        typer.Option(help="Instead of a rate: speed-up of the recorded arrivals."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of draws of arrivals and noise.", min=1)
    ] = 1,
    bound: Annotated[
        str,
        typer.Option(help="Bound in hindsight, in unit steps: fluid, auto or none."),
    ] = "fluid",
    jobs: Annotated[
        int | None,
        typer.Option(help="Parallel runs, -1 for every core; needs joblib."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Log of a single run, JSON lines."),
    ] = None,
    plot: PlotOption = None,
    plot_kind: Annotated[
        str, typer.Option(help=f"Kind of plot: {', '.join(PLOTS)}.")
    ] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Simulate every policy at every load with every seed, and print the metrics."""
    from online.named import parse_many
    from online.sweep import grid, sweep

    _check_plot(plot, plot_kind)
    _check_bound(bound)
    if sum(option is not None for option in (rate, load, speed_up)) > 1:
        raise ValueError("give one of --rate, --load and --speed-up.")
    has_rate = rate is not None or load is not None
    policies = parse_many(policy)
    setting, file = simulation.read(
        has_rate=has_rate, bound=bound, keep_logs=bool(output or plot)
    )
    refuse_unwritable(output, plot, inputs=simulation.inputs)
    _try_out(policies, setting)
    _refuse_contradictions(setting, load, rate, speed_up, seeds)
    if _unit(setting) == "steps" and (has_rate or setting.trace.arrival_s.any()):
        note("each step is taken as 1 s; --step-time gives seconds per step.")
    if speed_up is not None:
        rate = _sped_up(speed_up, setting)
    runs = grid(policies, loads=_loads(load), rate=rate, seeds=range(seeds))
    if output is not None and len(runs) > 1:
        raise ValueError(f"-o keeps the log of one run, but there are {len(runs)}.")
    if plot_kind == "timeline" and len(runs) > 1:
        raise ValueError(f"a timeline is of one run, but there are {len(runs)}.")
    _check_pooled(plot_kind, runs)
    with progress("runs") as report:
        outcomes = sweep(setting, runs, jobs=jobs, progress=report)
    if output is not None:
        _write_log(outcomes[0], output)
    if as_json:
        read = file.about(setting.rules, setting.step_time)
        print_json({**_as_json(setting, outcomes), "read": read})
    else:
        _print(setting, outcomes)
    if plot is not None:  # after the results, which a failed plot must not lose
        save(_draw(plot_kind, setting, outcomes), plot)


def _check_plot(plot: Path | None, kind: str) -> None:
    if plot is not None:
        plot_format(plot)
    if kind not in PLOTS:
        raise ValueError(
            f"--plot-kind {kind!r} is unknown; choose one of: {', '.join(PLOTS)}."
        )


def _loads(text: str | None) -> list[float | None]:
    if text is None:
        return [None]
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--load {text}: give numbers above 0 separated by commas."
        ) from None


def _sped_up(factor: float, setting: Setting) -> float:
    from online.arrivals import mean_rate

    if not factor > 0:
        raise ValueError(f"--speed-up {factor}: give a number above 0.")
    return factor * mean_rate(setting.trace)


def _refuse_contradictions(
    setting: Setting,
    load: str | None,
    rate: float | None,
    speed_up: float | None,
    seeds: int,
) -> None:
    """Refuse loads of a backlog, and seeds where nothing is drawn."""
    kind = setting.arrivals.name
    if kind == "at-once":
        given = {"--load": load, "--rate": rate, "--speed-up": speed_up}
        for option, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{option} is not for --arrivals at-once: all requests arrive at 0."
                )
    if seeds > 1 and kind in ("at-once", "trace") and setting.noise is None:
        raise ValueError(
            f"--seeds {seeds}: with arrivals {kind!r} and no --noise nothing is drawn, "
            "and every run is the same."
        )


def _check_pooled(kind: str, runs: list[Run]) -> None:
    """Refuse a curve over runs of several loads."""
    loads = len({run.load for run in runs})
    if loads > 1 and kind in ("slo", "cdf", "gamma"):
        raise ValueError(
            f"--plot-kind {kind} is of one load, but there are {loads}; choose load."
        )


def _check_bound(bound: str) -> None:
    known = ("fluid", "auto", "none")
    if bound not in known:
        raise ValueError(f"unknown bound {bound!r}; choose one of: {', '.join(known)}.")


def _try_out(policies: list[Named], setting: Setting) -> None:
    """Raise for wrong names and options before a long simulation."""
    from online.policy import make_policy
    from online.prediction import make

    if setting.noise is not None:
        make(setting.noise.name, **setting.noise.options)
    for tried in policies:
        make_policy(tried.name, max_wait_s=setting.max_wait_s, **tried.options)


def _write_log(outcome: RunOutcome, path: Path) -> None:
    from online.log_file import write_log

    if outcome.log is not None:
        write_log(outcome.log, path)


def _draw(kind: str, setting: Setting, outcomes: list[RunOutcome]) -> Figure:
    from online import plots

    if kind == "auto":
        kind = _suitable(outcomes)
    looks: dict[str, Any] = {"unit": _unit(setting), "title": _title(setting)}
    if kind == "timeline":
        assert outcomes[0].log is not None  # logs are kept for plots
        looks["title"] = f"{outcomes[0].run.policy} on {looks['title']}"
        return plots.plot_timeline(outcomes[0].log, setting.rules, **looks)
    draw = {
        "load": plots.plot_load,
        "cdf": plots.plot_cdfs,
        "slo": plots.plot_slo,
        "gamma": plots.plot_gamma,
    }[kind]
    return draw(outcomes, **looks)


def _suitable(outcomes: list[RunOutcome]) -> str:
    if len({outcome.run.load for outcome in outcomes}) > 1:
        return "load"
    return "timeline" if len(outcomes) == 1 else "cdf"


def _unit(setting: Setting) -> str:
    from sortedf.step_time import UNIT_STEPS

    return "steps" if setting.step_time == UNIT_STEPS else "s"


def _title(setting: Setting) -> str:
    n, name = setting.trace.num_requests, setting.trace.name
    trace = setting.trace
    refused = setting.rules.num_refused(trace.prefill, trace.decode)
    out = f", {refused:,} that can never run left out" if refused else ""
    return (
        f"{name}: {n - refused:,} requests, KV budget {setting.rules.kv_budget:,} "
        f"tokens, arrivals {setting.arrivals}{out}"
    )


def _as_json(setting: Setting, outcomes: list[RunOutcome]) -> dict[str, Any]:
    return {
        "n": setting.trace.num_requests,
        "kv_budget": setting.rules.kv_budget,
        "unit": _unit(setting),
        "arrivals": str(setting.arrivals),
        "noise": None if setting.noise is None else str(setting.noise),
        "rows": [
            {**_run_as_dict(setting, outcome.run), **outcome.metrics.as_dict()}
            for outcome in outcomes
        ],
    }


def _run_as_dict(setting: Setting, run: Run) -> dict[str, Any]:
    load, rate = _load_and_rate(setting, run)
    return {
        "policy": str(run.policy),
        "load": load,
        "rate": rate,
        "seed": run.seed,
    }


def _load_and_rate(setting: Setting, run: Run) -> tuple[float | None, float | None]:
    """Return the load and the requests per second of a run, None if all arrive at once.

    Both are given, or follow from the other or from the recorded times.
    """
    from online.arrivals import mean_rate
    from sortedf.load import load_of_rate, rate_of_load

    engine = setting.trace, setting.rules, setting.step_time
    if run.load is not None:
        return run.load, rate_of_load(run.load, *engine)
    rate = run.rate
    if rate is None:
        if setting.arrivals.name != "trace" or not setting.trace.arrival_s.any():
            return None, None
        rate = mean_rate(setting.trace)
    return load_of_rate(rate, *engine), rate


def _rates(setting: Setting, outcomes: list[RunOutcome]) -> str:
    """Say at which loads and rates requests arrive."""
    pairs = dict.fromkeys(_load_and_rate(setting, one.run) for one in outcomes)
    said = [f"load {load:.4g} is {rate:.4g} requests/s" for load, rate in pairs if rate]
    return "\n" + ", ".join(said) if said else ""


def _print(setting: Setting, outcomes: list[RunOutcome]) -> None:
    groups: dict[tuple[float | None, str], list[dict[str, Any]]] = {}
    for outcome in outcomes:
        key = (outcome.run.load, str(outcome.run.policy))
        groups.setdefault(key, []).append(outcome.metrics.as_dict())
    rows = [
        ([] if load is None else [f"{load:g}"]) + _cells(policy, figures)
        for (load, policy), figures in groups.items()
    ]
    has_load = any(load is not None for load, _ in groups)
    unit = _unit(setting)
    title = _title(setting) + _rates(setting, outcomes)
    num_seeds = len({outcome.run.seed for outcome in outcomes})
    if num_seeds > 1:
        title += f"\nmedians of {num_seeds} seeds"
    per = "tokens/step" if unit == "steps" else "tokens/s"
    columns = [
        "policy", f"mean ({unit})", "P50 TTLT", "P99 TTLT", "P50 TTFT", "P99 TTFT",
        "P99 TBT", per, "KV lost", "longest wait", "gap",
    ]  # fmt: skip
    print_table(
        title, (["load"] if has_load else []) + columns, rows, num_text=1 + has_load
    )


def _cells(policy: str, figures: list[dict[str, Any]]) -> list[str]:
    def middle(*path: str) -> float | None:
        found = []
        for figure in figures:
            value: Any = figure
            for key in path:
                value = None if value is None else value[key]
            if value is not None:
                found.append(value)
        return median(found) if found else None

    lost = (middle("preemptions") or 0) + (middle("evictions") or 0)
    return [
        policy,
        _number(middle("mean_latency")),
        _number(middle("ttlt", "p50")),
        _number(middle("ttlt", "p99")),
        _number(middle("ttft", "p50")),
        _number(middle("ttft", "p99")),
        _number(middle("tbt", "p99")),
        _number(middle("throughput")),
        f"{lost:,.0f}",
        _number(middle("longest_wait")),
        percent(middle("gap")),
    ]


def _number(value: float | None) -> str:
    """Format a number with at least three digits."""
    if value is None:
        return "-"
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:,.{decimals}f}"
