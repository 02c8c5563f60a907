"""A real vLLM engine: agreement with the step engine, and gains over its default.

Mean completions in steps repeat exactly; those in seconds want a quiet machine.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import TINY_MODEL_LEN, scaled_mix
from benchmarks.registry import Spec, add, markdown_table
from online.executor.execution import chart, run_course
from online.executor.stock import run_stock
from online.executor.vllm_engine import VllmEngine, VllmSettings
from online.rules import StepRules

if TYPE_CHECKING:
    from benchmarks.registry import Row, Settings
    from online.executor.execution import Course, Execution, Mode
    from sortedf import Instance

KV_BUDGET = 4096
SCARCE_KV_BUDGET = 2048
"""About as scarce for the scaled lengths as 16,492 tokens are for the real ones."""

STEPS = {"large": (8192, 128), "small": (96, 96), "few": (8192, 9)}
"""Tokens and requests of a step: large steps, small ones in which prompts are cut, and
few requests at once."""

COURSES: tuple[tuple[Mode, str], ...] = (
    ("policy", "fcfs"), ("policy", "svf"), ("list", "sorted-f"), ("plan", "svf"),
    ("plan", "auto"),
)  # fmt: skip
GAINS: tuple[tuple[Mode, str], ...] = (
    ("policy", "svf"), ("list", "sorted-f"), ("plan", "auto"),
)  # fmt: skip
PAIRS = 5


def _settings(name: str, kv_budget: int = KV_BUDGET) -> VllmSettings:
    tokens, seqs = STEPS[name]
    return VllmSettings(
        kv_budget,
        max_num_seqs=seqs,
        max_batched_tokens=tokens,
        max_model_len=TINY_MODEL_LEN,
    )


def _rules(settings: VllmSettings) -> StepRules:
    return StepRules(
        settings.kv_budget,
        settings.block_size,
        settings.max_num_seqs,
        settings.max_batched_tokens,
    )


def _run(
    course: Course, instance: Instance, settings: VllmSettings
) -> tuple[Execution, VllmEngine]:
    made: list[VllmEngine] = []

    def start(table: Any, policy: Any) -> VllmEngine:
        made.append(VllmEngine(table, policy, settings))
        return made[-1]

    execution = run_course(course, instance, start)
    made[0].close()
    return execution, made[0]


def agreement(settings: Settings) -> list[Row]:
    """Run every course with every kind of step, three seeds; compare all requests."""
    rows = []
    n = settings.pick(300, 40)
    for seed in range(1, settings.pick(3, 1) + 1):
        instance = scaled_mix(n, seed)
        for kind in list(STEPS)[: settings.pick(len(STEPS), 1)]:
            engine = _settings(kind)
            for mode, method in COURSES[: settings.pick(len(COURSES), 2)]:
                if mode == "plan" and kind == "small":
                    continue  # prompts of several steps cannot be planned
                course = chart(instance, _rules(engine), method, mode=mode)
                execution, _ = _run(course, instance, engine)
                rows.append(_agreement_row(execution, n, seed, kind, mode, method))
    return rows


def _agreement_row(
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


def gains(settings: Settings) -> list[Row]:
    """Run plain vLLM and our courses on the same requests, in turns."""
    rows = []
    n = settings.pick(300, 40)
    engine = _settings("large", SCARCE_KV_BUDGET)
    for pair in range(1, settings.pick(PAIRS, 1) + 1):
        instance = scaled_mix(n, pair)
        stock = run_stock(instance, engine)
        rows.append(
            {
                "n": n,
                "pair": pair,
                "run": "vLLM's default",
                "mean_completion_step": float(stock.completion_step.mean()),
                "mean_completion_s": float(stock.completion_s.mean()),
                "makespan": stock.num_steps,
                "preemptions": stock.preemptions,
            }
        )
        for mode, method in GAINS[: settings.pick(len(GAINS), 1)]:
            began = time.perf_counter()
            course = chart(instance, _rules(engine), method, mode=mode)
            planning_s = time.perf_counter() - began
            execution, ran = _run(course, instance, engine)
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


def _agreement_table(rows: list[Row]) -> str:
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


def _gains_table(rows: list[Row]) -> str:
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


add("engine", Spec("A real vLLM engine, step for step", agreement, _agreement_table))
add("engine_gains", Spec("Against plain vLLM", gains, _gains_table))
