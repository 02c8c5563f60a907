"""`sortedf run`: run an engine by a schedule or by a policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import typer

from online.arrivals import default_kind
from online.cli.live import live_view
from online.engine_table import ENGINES
from online.prompt_chains import chains_of
from sortedf.atomic import refuse_unwritable
from sortedf.cli.common_options import (
    BackfillOption,
    BacklogOption,
    PlotOption,
    SeedOption,
    StepSecondsOption,
    TimeLimitOption,
)
from sortedf.cli.output import (
    JsonOption,
    note,
    print_json,
    print_table,
    standard_output_kept,
)
from sortedf.cli.problem import step_seconds, takes_problem
from sortedf.cli.trace_options import TraceOptions
from sortedf.engine_presets import PRESETS
from sortedf.errors import TraceError
from sortedf.plotting import plot_format, save
from sortedf.step_time import StepTime

if TYPE_CHECKING:
    from online.executor.execution import Execution, RunPlan
    from online.prompt_chains import PromptChains
    from online.requests import RequestTable
    from online.state import Policy
    from online.step_engine import Engine
    from sortedf.engine_model import EngineModel
    from sortedf.request_set import RequestSet
    from sortedf.traces.sessions import Sessions

HELP = "Run a trace in an engine and compare it step by step with its prediction."
EXAMPLE = (
    "Example: sortedf run trace.csv --engine vllm --method svf --kv-budget 8192 "
    "--plot usage.png"
)
MOST_NAMED = 5
"""Largest number of requests that can never run named in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun(TraceOptions):
    """A trace and an engine; each field is an option."""

    # Values for every device: on a CPU vLLM's blocks have 32 tokens.
    DEFAULTS: ClassVar = {
        **PRESETS["vllm-offline"],
        "block_size": 32,
        "prefix_caching": False,
    }

    engine: Annotated[
        str,
        typer.Option(
            help="step (vLLM's rules, no model), vllm (a real one), or another that is "
            "installed."
        ),
    ] = "step"
    model: Annotated[
        str | None,
        typer.Option(help="Model for vllm; a tiny random Llama if left out."),
    ] = None
    step_time: StepSecondsOption = "1"
    backlog: BacklogOption = False

    def rules(self) -> EngineModel:
        """Return the engine's rules, with a budget of whole blocks."""
        kind = ENGINES.find(self.engine)
        if self.model is not None and not kind.takes_model:
            takers = [name for name, kind in ENGINES.items() if kind.takes_model]
            raise ValueError(f"--model is for --engine {' or '.join(takers)} only.")
        rules = self.engine_model()
        if not rules.num_blocks:
            raise ValueError(
                f"--kv-budget {rules.kv_budget}: must be at least one block of "
                f"{rules.block_size} tokens."
            )
        return replace(rules, kv_budget=rules.usable_kv)

    def read(self, rules: EngineModel, mode: str) -> EngineInput:
        """Read the trace, and leave out requests that can never run."""
        file = self.read_file()
        trace = file.trace
        lengths = zip(trace.prefill.tolist(), trace.decode.tolist(), strict=True)
        refusal = ENGINES.find(self.engine).refusal
        reasons = [refusal(rules, s, o) for s, o in lengths]
        rows = trace.row.tolist()
        keep = [i for i, reason in enumerate(reasons) if reason is None]
        refused = {
            row: why for row, why in zip(rows, reasons, strict=True) if why is not None
        }
        if not keep:
            raise ValueError(
                f"{self.trace}: no request can run: row {rows[0]} {reasons[0]}."
            )
        step_s = step_seconds(self.step_time)
        step_time = StepTime(constant_s=step_s)
        file.say(rules, step_time)
        turns, chains = None, None
        if mode == "policy":  # a plan has fixed arrivals, and knows of no prefixes
            kept = trace.subset(keep)
            if default_kind(trace, has_rate=False) == "sessions" and not self.backlog:
                turns = kept.sessions and kept.sessions.in_steps(step_s)
                trace = replace(trace, sessions=None)
            if rules.prefix_caching:
                chains = chains_of(replace(kept, sessions=turns), rules.block_size)
        requests = trace.to_requests(step_time_s=step_s, backlog=self.backlog)
        if refused:
            requests = requests.subset(keep)
        about = file.about(rules, step_time)
        return EngineInput(requests, refused, chains, turns, about)


class EngineInput(NamedTuple):
    """Requests that an engine can run.

    Attributes
    ----------
    requests : RequestSet
        Their lengths, and arrivals in steps.
    refused : dict of int to str
        Reasons for all others, by row.
    chains : PromptChains, optional
        Shared prefixes of prompts.
    sessions : Sessions, optional
        Turns that follow others.
    read : dict
        What was read from the file.
    """

    requests: RequestSet
    refused: dict[int, str]
    chains: PromptChains | None
    sessions: Sessions | None
    read: dict[str, Any]


@takes_problem
def command(
    run: EngineRun,
    method: Annotated[
        str,
        typer.Option(
            help="A method, as for solve; with --mode policy a policy, as for "
            "simulate: uniboost:gamma=0.5."
        ),
    ] = "auto",
    mode: Annotated[
        Literal["plan", "list", "policy"],
        typer.Option(
            help="plan: start each request in its planned step; list: in the planned "
            "order, as soon as look-ahead admits it; policy: decide online."
        ),
    ] = "plan",
    backfill: BackfillOption = None,
    max_wait: Annotated[
        float | None,
        typer.Option(
            help="With --mode policy: steps after which a request is served first.",
            min=0,
        ),
    ] = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            help="Plan for an engine to follow, as 'sortedf solve -o' wrote it.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Log to write, as JSON lines."),
    ] = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan, run, compare and print."""
    from online.executor.execution import execute_plan, plan_run

    if plot is not None:
        plot_format(plot)
    inputs = (run.trace, run.tokenizer, run.step_time, plan_file)
    refuse_unwritable(output, plot, inputs=inputs)
    rules = run.rules()
    requests, refused, chains, sessions, read = run.read(rules, mode)
    _note_refused(run.trace, refused)
    name, options = _chosen(method, mode, backfill, max_wait, time_limit, seed)
    start = ENGINES.find(run.engine).prepare(rules, requests, run.model)
    if plan_file is None:
        plan = plan_run(requests, rules, name, mode=mode, **options)
    else:
        plan = _read_plan(plan_file, requests, rules, refused, mode)
    engines: list[Engine] = []

    def make(table: RequestTable, policy: Policy) -> Engine:
        engines.append(start(table, policy))
        return engines[-1]

    with (
        standard_output_kept(),
        live_view(requests.num_requests, rules.num_blocks) as view,
    ):
        execution = execute_plan(
            plan, requests, make, chains=chains, sessions=sessions, watch=view.watch
        )
    step_s = getattr(engines[0], "step_s", None)
    if output is not None:
        from online.log_file import write_log

        write_log(execution.log, output, duration_s=step_s)
    if plot is not None:
        _plot(execution, rules, plot, f"{run.engine}, {method} ({mode})")
    content = {
        "engine": run.engine,
        "method": method,
        "mode": mode,
        **_content(execution, refused, step_s),
        "read": read,
    }
    if as_json:
        print_json(content)
    else:
        _print(run, method, mode, content)


def _read_plan(
    path: Path,
    requests: RequestSet,
    rules: EngineModel,
    refused: dict[int, str],
    mode: str,
) -> RunPlan:
    """Read a plan of the requests that can run."""
    from online.executor.execution import follow_plan
    from online.executor.planning import read_engine_plan
    from sortedf.engine_plan.plan_file import read_plan

    if mode != "plan":
        raise ValueError("--plan is for --mode plan.")
    start, position, _ = read_plan(path)
    steps = [step for step in start if step is not None]
    places = [place for place in position if place is not None]
    if len(start) != len(position) or len(start) != requests.num_requests + len(
        refused
    ):
        raise TraceError(
            f"{path} has {len(start)} starts and {len(position)} positions but the "
            f"trace has {requests.num_requests + len(refused)} requests."
        )
    if not len(steps) == len(places) == requests.num_requests:
        raise TraceError(
            f"{path} plans {len(steps)} requests but {requests.num_requests} can run."
        )
    order = np.argsort(np.array(places), kind="stable").tolist()
    return follow_plan(read_engine_plan(requests, rules, steps, order))


def _chosen(
    method: str,
    mode: str,
    backfill: int | None,
    max_wait: float | None,
    time_limit: float | None,
    seed: int,
) -> tuple[str, dict[str, Any]]:
    """Name and options of the method or policy; raise for options not for it."""
    from online.named import parse_named

    options: dict[str, Any] = {} if backfill is None else {"backfill": backfill}
    if mode != "policy":
        if max_wait is not None:
            raise ValueError("--max-wait is for --mode policy.")
        return method, {**options, "time_limit": time_limit, "seed": seed}
    if method == "auto":
        raise ValueError(
            "--mode policy needs --method with the name of a policy, such as svf; see "
            "'sortedf policies'."
        )
    if time_limit is not None:
        raise ValueError("--time-limit is not for --mode policy: there is no search.")
    named = parse_named(method)
    if max_wait is not None:
        options["max_wait_s"] = max_wait
    return named.name, {**named.options, **options}


def _note_refused(trace: Path, refused: dict[int, str]) -> None:
    for row, reason in list(refused.items())[:MOST_NAMED]:
        note(f"{trace}: row {row} {reason}; left out.")
    if len(refused) > MOST_NAMED:
        note(f"{trace}: {len(refused):,} rows that can never run are left out in all.")


def _plot(execution: Execution, rules: EngineModel, plot: Path, title: str) -> None:
    from online.plots.planned_usage import plot_planned

    save(plot_planned(execution.log, execution.predicted, rules, title=title), plot)


def _content(
    execution: Execution,
    refused: dict[int, str],
    step_s: list[float] | None,
) -> dict[str, Any]:
    from online.metrics import hit_rate  # loads the compiler

    log = execution.log
    steps = log.steps
    return {
        "requests": len(log.decode) + len(refused),
        "completed": int(log.completed.sum()),
        "refused": [{"row": row, "reason": reason} for row, reason in refused.items()],
        "steps": log.num_steps,
        "preemptions": int(log.preemptions.sum()),
        "recomputed_tokens": int(log.recomputed_tokens.sum()),
        "cached_tokens": int(log.cached_tokens.sum()),
        "hit_rate": hit_rate(log),
        "mean_completion_step": float(np.mean(log.completion_s)),
        "predicted_mean_completion_step": float(
            np.mean(execution.predicted_completion_s)
        ),
        "steps_matching": execution.steps_matching,
        "makespan": round(float(steps.end_s[-1])),  # a step is the unit of time
        "peak_kv": int(steps.used_blocks.max()) * execution.rules.block_size,
        "kv_budget": execution.rules.num_blocks * execution.rules.block_size,
        "seconds": None if step_s is None else sum(step_s),
    }


def _print(run: EngineRun, method: str, mode: str, content: dict[str, Any]) -> None:
    completed, requests = content["completed"], content["requests"]
    rows = [
        ("completed", f"{completed:,} of {requests:,} requests"),
        ("as predicted", f"{content['steps_matching']:,} in the very step"),
        ("mean completion", f"step {content['mean_completion_step']:,.1f}"),
        ("predicted", f"step {content['predicted_mean_completion_step']:,.1f}"),
        ("steps", f"{content['steps']:,}"),
        ("preemptions", f"{content['preemptions']:,}"),
        ("peak KV", f"{content['peak_kv']:,} of {content['kv_budget']:,} tokens"),
    ]
    if content["seconds"] is not None:
        rows.append(("time in steps", f"{content['seconds']:.2f} s"))
    print_table(f"{run.trace}: {run.engine} engine", (f"{method}, {mode}", ""), rows)
