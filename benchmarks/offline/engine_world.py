"""Plans for common engines: certified gaps in steps and in seconds."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import CHAT, DOCUMENTS, sample
from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.plan_checker import check_plan
from sortedf.engine_plan.planning import plan_engine
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.step_time import PRESETS, UNIT_STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEEDS = (5, 6, 7)

TIME_LIMIT_S = 10.0
"""For each method that searches."""

METHODS = ("fcfs", "mc-sf", "svf", "sorted-f", "least-work", "auto")

ENGINES = {
    "16,492, papers": EngineModel(16_492),
    "60k, 256, 2,048": EngineModel.vllm(60_000, 16, 256, 2048),
    "200k, 256, 2,048": EngineModel.vllm(200_000, 16, 256, 2048),
    "400k, 256, 8,192": EngineModel.vllm(400_000, 16, 256, 8192),
    "450k, 1,024, 8,192": EngineModel.vllm(450_000, 16, 1024, 8192),
}
"""Tokens of KV: in the papers' model, and in blocks of 16, with requests and tokens per
step, by vLLM's rules."""

CLOCKS = {
    "steps": UNIT_STEPS,
    "A100, 8B": PRESETS["a100-llama-3-8b"],
    "four A100, 70B": PRESETS["4xa100-llama-3-70b"],
}

TRACES = (
    "sharegpt_8k",
    "azure_2023_conv",
    "azure_2023_code",
    "bwb_translation_4k",
    "servegen_deepseek_r1_resampled",
)
"""Workloads beside the mix of chats and documents."""


def run(settings: Settings) -> list[Row]:
    """Plan every workload for every engine and clock; every plan is checked."""
    n = settings.pick(2000, 60)
    journal = Journal("engine_world", settings)
    rows = []
    for seed in SEEDS[: settings.pick(3, 1)]:
        for trace in ("80/20", *TRACES)[: settings.pick(99, 1)]:
            lengths = _lengths(settings, trace, n, seed)
            for engine, model in ENGINES.items():
                can = [model.refusal(s, o) is None for s, o in lengths.tolist()]
                for clock, step_time in CLOCKS.items():
                    s, o = lengths[can].T
                    workload = EngineWorkload(s, o, model, (step_time,))
                    where = {
                        "trace": trace, "seed": seed, "engine": engine, "clock": clock
                    }  # fmt: skip
                    limit = None if settings.quick else TIME_LIMIT_S
                    key = f"{trace}, {seed}, {engine}, {clock}"
                    row = journal.row(key, partial(_planned, workload, limit))
                    rows.append({**where, **row})
    return rows


def _lengths(settings: Settings, trace: str, n: int, seed: int) -> NDArray[np.int64]:
    """Draw lengths of prompts and answers; shape (n, 2)."""
    rng = np.random.default_rng(seed)
    if trace != "80/20":
        return sample(settings.data, trace, n, rng)
    num_long = round(n * 0.2)
    drawn = [
        sample(settings.data, CHAT, n - num_long, rng),
        sample(settings.data, DOCUMENTS, num_long, rng),
    ]
    requests = np.concatenate(drawn)
    rng.shuffle(requests)
    return requests


def _planned(workload: EngineWorkload, limit: float | None) -> Row:
    least = seconds_bound(workload)
    n = workload.num_requests
    means, runtimes = {}, {}
    for method in METHODS:
        found = plan_engine(workload, method, time_limit=limit, prices=least.prices)
        report = check_plan(
            workload, found.plan.start.tolist(), found.plan.order.tolist()
        )
        total_s = report.total_s
        if total_s is None or total_s < least.total_s * (1 - 1e-9):
            raise RuntimeError(f"{method}: {report.violations[:1]}, bound {least}")
        means[method], runtimes[method] = total_s / n, found.runtime_s
    return {
        "n": n,
        "bound": least.total_s / n,
        "bound_s": least.runtime_s,
        "mean": means,
        "runtime_s": runtimes,
        "found_by": found.found_by,
        **{
            name: None if np.isinf(value) else value
            for name, value in asdict(found.plan.admission).items()
        },
    }


def gap(row: Row, method: str = "auto") -> float:
    """Certified gap of a method."""
    return float(row["mean"][method]) / float(row["bound"]) - 1


def page(rows: list[Row]) -> str:
    """Lay out gaps and factors, medians over seeds."""
    body = [
        f"n = {max(row['n'] for row in rows):,} requests, all there at the start; "
        f"{len({row['seed'] for row in rows})} draws; `auto` has {TIME_LIMIT_S:.0f} s. "
        "The gap is that of `auto`, "
        "certified: no schedule of the engine is better by more. Factors are the mean "
        "latency of other methods over that of `auto`."
    ]
    for clock in CLOCKS:
        here = [row for row in rows if row["clock"] == clock]
        gaps = [gap(row) for row in here]
        body.append(
            f"## {clock}\n\nCertified gap: {median(gaps):.1%} in the median, "
            f"{max(gaps):.1%} at most."
        )
        body.append(_table(here))
    return "\n\n".join(body)


def _table(rows: list[Row]) -> str:
    cells = dict.fromkeys((row["trace"], row["engine"]) for row in rows)
    lines = []
    for trace, engine in cells:
        here = [row for row in rows if (row["trace"], row["engine"]) == (trace, engine)]
        mean = median(row["mean"]["auto"] for row in here)
        factors = [
            median(row["mean"][method] / row["mean"]["auto"] for row in here)
            for method in METHODS[:-1]
        ]
        lines.append(
            [
                trace,
                engine,
                f"{mean:,.1f}",
                f"{median(map(gap, here)):.1%}",
                *(f"{factor:.2f}" for factor in factors),
            ]
        )
    return markdown_table(
        ["trace", "engine", "mean latency", "gap", *METHODS[:-1]], lines
    )


SPEC = Spec("Plans for engines", run, page, needs=("data",))
