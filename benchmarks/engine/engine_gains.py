"""A real vLLM engine: gains over its default order.

Mean completions in steps repeat exactly; those in seconds want a quiet machine.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import scaled_mix
from benchmarks.common.registry import Spec, markdown_table
from benchmarks.engine.parts.baseline import run_baseline
from benchmarks.engine.parts.courses import engine_settings, execute
from online.executor.execution import plan_run

if TYPE_CHECKING:
    from benchmarks.common.registry import Row, Settings
    from online.executor.execution import Mode

SCARCE_KV_BUDGET = 2048
"""About as scarce for the scaled lengths as 16,492 tokens are for the real ones."""

GAINS: tuple[tuple[Mode, str], ...] = (
    ("policy", "svf"), ("list", "sorted-f"), ("plan", "auto"),
)  # fmt: skip
PAIRS = 5


def run(settings: Settings) -> list[Row]:
    """Run plain vLLM and our courses on the same requests, in turns."""
    rows = []
    n = settings.pick(300, 40)
    engine = engine_settings("large", SCARCE_KV_BUDGET)
    for pair in range(1, settings.pick(PAIRS, 1) + 1):
        instance = scaled_mix(n, pair)
        baseline = run_baseline(instance, engine)
        rows.append(
            {
                "n": n,
                "pair": pair,
                "run": "vLLM's default",
                "mean_completion_step": float(baseline.completion_step.mean()),
                "mean_completion_s": float(baseline.completion_s.mean()),
                "makespan": baseline.num_steps,
                "preemptions": baseline.preemptions,
            }
        )
        for mode, method in GAINS[: settings.pick(len(GAINS), 1)]:
            began = time.perf_counter()
            plan = plan_run(instance, engine.engine, method, mode=mode)
            planning_s = time.perf_counter() - began
            execution, ran = execute(plan, instance, engine)
            log = execution.log
            ends = np.cumsum(ran.step_s)
            rows.append(
                {
                    "n": n,
                    "pair": pair,
                    "run": f"{method} ({mode})",
                    "mean_completion_step": float(log.completion_step.mean()),
                    "mean_completion_s": float(ends[log.completion_step - 1].mean()),
                    "planning_s": planning_s,
                    "makespan": log.num_steps,
                    "preemptions": int(log.preemptions.sum()),
                }
            )
    return rows


def page(rows: list[Row]) -> str:
    """Medians over the pairs, one line for each course."""
    base = {r["pair"]: r for r in rows if r["run"] == "vLLM's default"}
    lines = []
    for name in dict.fromkeys(row["run"] for row in rows):
        own = [row for row in rows if row["run"] == name]
        lines.append(
            [
                name,
                f"{median(r['mean_completion_step'] for r in own):.1f}",
                f"{_speedup(base, own, 'mean_completion_step'):.2f}",
                f"{_speedup(base, own, 'mean_completion_s'):.2f}",
                f"{median(r['makespan'] for r in own):.0f}",
                f"{median(r['preemptions'] for r in own):.0f}",
            ]
        )
    intro = (
        "Against plain vLLM on the same requests (medians of paired runs, one seed "
        "each): mean completion in steps, and how many times smaller it is in steps "
        "and in measured seconds."
    )
    columns = [
        "run", "mean completion step", "better in steps", "better in seconds",
        "makespan", "preemptions",
    ]  # fmt: skip
    return f"{intro}\n\n{markdown_table(columns, lines)}"


def _speedup(base: dict[int, Row], own: list[Row], key: str) -> float:
    return float(median(base[row["pair"]][key] / row[key] for row in own))


SPEC = Spec("Against plain vLLM", run, page, needs=("vllm",))
