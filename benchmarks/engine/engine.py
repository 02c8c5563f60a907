"""A real vLLM engine: agreement with the step engine, request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.common.data import scaled_mix
from benchmarks.common.registry import Spec, markdown_table
from benchmarks.engine.parts.courses import STEPS, engine_settings, execute
from online.executor.execution import plan_run

if TYPE_CHECKING:
    from benchmarks.common.registry import Row, Settings
    from online.executor.execution import Execution, Mode

COURSES: tuple[tuple[Mode, str], ...] = (
    ("policy", "fcfs"), ("policy", "svf"), ("list", "sorted-f"), ("plan", "svf"),
    ("plan", "auto"),
)  # fmt: skip


def run(settings: Settings) -> list[Row]:
    """Run every course with every kind of step, three seeds; compare all requests."""
    rows = []
    n = settings.pick(300, 40)
    for seed in range(1, settings.pick(3, 1) + 1):
        instance = scaled_mix(n, seed)
        for kind in list(STEPS)[: settings.pick(len(STEPS), 1)]:
            engine = engine_settings(kind)
            for mode, method in COURSES[: settings.pick(len(COURSES), 2)]:
                if mode == "plan" and kind == "small":
                    continue  # prompts of several steps cannot be planned
                plan = plan_run(instance, engine.engine, method, mode=mode)
                execution, _ = execute(plan, instance, engine)
                rows.append(_row(execution, n, seed, kind, mode, method))
    return rows


def _row(
    execution: Execution, n: int, seed: int, kind: str, mode: str, method: str
) -> Row:
    log, twin = execution.log, execution.predicted
    same = (log.completion_step == twin.completion_step) & (
        log.start_step == twin.start_step
    )
    return {
        "n": n,
        "seed": seed,
        "steps": kind,
        "mode": mode,
        "method": method,
        "matching": int(same.sum()),
        "num_steps": log.num_steps,
        "preemptions": int(log.preemptions.sum()),
        "preemptions_match": bool((log.preemptions == twin.preemptions).all()),
        "mean_completion_step": float(log.completion_step.mean()),
    }


def page(rows: list[Row]) -> str:
    """One line for each run."""
    lines = [
        [
            f"{row['method']} ({row['mode']})",
            row["steps"],
            str(row["seed"]),
            f"{row['matching']} of {row['n']}",
            str(row["preemptions"]),
            f"{row['mean_completion_step']:.1f}",
        ]
        for row in rows
    ]
    intro = (
        "Requests that start and finish in a real vLLM engine in exactly the steps "
        "that the step engine says. Steps: large (8,192 tokens), small (96 tokens, "
        "prompts are cut), few (at most 9 requests at once)."
    )
    columns = ["run", "steps", "seed", "as said", "preemptions", "mean completion step"]
    return f"{intro}\n\n{markdown_table(columns, lines)}"


SPEC = Spec("A real vLLM engine, step for step", run, page, needs=("vllm",))
