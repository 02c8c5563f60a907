"""Every policy beside plain vLLM with prefix caching, on a grid of random cases.

vLLM's scheduler and its KV cache are real, and so are ours; the device is simulated,
since steps do not depend on a model's answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.registry import Spec, markdown_table
from benchmarks.engine.parts.baseline import run_baseline
from benchmarks.engine.parts.played_device import played
from online.driver import drive
from online.executor.prompts import random_prompt
from online.executor.vllm_engine import VllmEngine, VllmSettings
from online.policy import make_policy
from online.requests import RequestTable
from sortedf.engine_model import EngineModel
from sortedf.instance import Instance

if TYPE_CHECKING:
    from benchmarks.common.registry import Row, Settings

POLICIES = (
    "fcfs", "svf", "svf-boost", "svf-aged", "svf-blind", "svf-1bit", "mc-sf",
    "total-size", "sorted-f-online", "sorted-f-amin", "hrrn", "pars", "distboost",
)  # fmt: skip
"""All policies that never evict."""

BLOCK_SIZE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A backlog of prompts with shared prefixes, and an engine.

    Attributes
    ----------
    name : str
    instance : Instance
    prompts : list of list of int
    share : float
        Part of all prompt tokens in prefixes of several requests.
    tightness : float
        Cache over the largest KV of all requests together, each prefix held once.
    settings : VllmSettings
    """

    name: str
    instance: Instance
    prompts: list[list[int]]
    share: float
    tightness: float
    settings: VllmSettings


def named_case(n: int, kv_budget: int) -> Case:
    """Return requests with 512 tokens in common, 8 of their own and answers of 24."""
    prefix = random_prompt(10**6, 512)
    prompts = [prefix + random_prompt(i, 8) for i in range(n)]
    instance = Instance([520] * n, [24] * n, kv_budget)
    needed = 512 + n * BLOCK_SIZE
    return Case(
        f"{n} requests, {kv_budget:,} tokens", instance, prompts, 512 / 520,
        kv_budget / needed, _settings(kv_budget, 512, 32, prompts, [24] * n),
    )  # fmt: skip


def random_case(seed: int) -> Case:
    """Draw a backlog: some groups with a prefix each, and a cache tight or ample."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(40, 81))
    groups = int(draw.choice([1, 2, 4, 8]))
    share = float(draw.uniform(0.0, 0.95))
    own = np.where(
        draw.random(n) < 0.8, draw.integers(8, 80, n), draw.integers(80, 300, n)
    )
    answer = np.where(
        draw.random(n) < 0.8, draw.integers(4, 60, n), draw.integers(60, 250, n)
    )
    # Tokens of a prefix, so that prefixes make up that share of all prompts.
    length = min(int(share / (1 - share) * own.mean()), 1200)
    group = draw.integers(0, groups, n)
    prefixes = [random_prompt(10**6 + 100 * seed + g, length) for g in range(groups)]
    prompts = [
        prefixes[group[i]] + random_prompt(1000 * seed + i, int(own[i]))
        for i in range(n)
    ]
    prefill = np.array([len(prompt) for prompt in prompts])
    largest = int((prefill + answer).max()) + BLOCK_SIZE
    needed = int((own + answer).sum()) + groups * length + n * BLOCK_SIZE
    tightness = float(draw.choice([0.1, 0.2, 0.4, 0.7, 1.0]))
    kv_budget = max(int(tightness * needed), int(1.3 * largest))
    kv_budget = -(-kv_budget // BLOCK_SIZE) * BLOCK_SIZE
    settings = _settings(
        kv_budget,
        int(draw.choice([256, 2048, 8192])),
        int(draw.choice([16, 256])),
        prompts,
        answer.tolist(),
    )
    return Case(
        str(seed), Instance(prefill, answer, kv_budget), prompts,
        float(groups and length * n / prefill.sum()), kv_budget / needed, settings,
    )  # fmt: skip


def _settings(
    kv_budget: int,
    tokens: int,
    seqs: int,
    prompts: list[list[int]],
    answers: list[int],
) -> VllmSettings:
    lengths = [len(p) + a for p, a in zip(prompts, answers, strict=True)]
    engine = EngineModel.vllm(kv_budget, BLOCK_SIZE, seqs, tokens, prefix_caching=True)
    return VllmSettings(engine, max_model_len=max(lengths))


def run(settings: Settings) -> list[Row]:
    """Run plain vLLM and every policy on the same requests."""
    cases = [named_case(40, 2048), named_case(120, 4096)]
    if settings.quick:
        cases = cases[:1]
    cases += [random_case(seed) for seed in range(1, settings.pick(100, 1) + 1)]
    rows = []
    for case in cases:
        rows += rows_of(case, POLICIES[: settings.pick(len(POLICIES), 2)])
    return rows


def rows_of(case: Case, policies: tuple[str, ...]) -> list[Row]:
    """Run one case: plain vLLM, then each policy in an engine of ours."""
    baseline = run_baseline(case.instance, case.settings, case.prompts, played=played)
    what = {
        "case": case.name,
        "n": case.instance.num_requests,
        "share": round(case.share, 3),
        "tightness": round(case.tightness, 3),
        "kv_budget": case.settings.engine.kv_budget,
        "max_batched_tokens": case.settings.engine.max_batched_tokens,
        "max_num_seqs": case.settings.engine.max_num_seqs,
    }
    rows = [
        {
            **what,
            "run": "vLLM",
            "mean_completion_step": float(baseline.completion_step.mean()),
            "makespan": baseline.num_steps,
            "preemptions": baseline.preemptions,
        }
    ]
    engine: Any = None
    for name in policies:
        # Policies that need a rank get the true length.
        table = RequestTable.of_instance(case.instance, score=case.instance.decode)
        if engine is None:
            engine = VllmEngine(
                table, make_policy(name), case.settings, prompts=case.prompts
            )
        else:
            engine.use(table, make_policy(name), prompts=case.prompts)
        with played(engine.core, 0.0, run_async=False):
            log = drive(engine)
        rows.append(
            {
                **what,
                "run": name,
                "mean_completion_step": float(log.completion_step.mean()),
                "makespan": log.num_steps,
                "preemptions": int(log.preemptions.sum()),
            }
        )
    engine.close()
    return rows


def ratios(rows: list[Row], name: str) -> list[float]:
    """Mean completion of a policy over plain vLLM's, one per case."""
    plain = {r["case"]: r["mean_completion_step"] for r in rows if r["run"] == "vLLM"}
    return [
        row["mean_completion_step"] / plain[row["case"]]
        for row in rows
        if row["run"] == name
    ]


def page(rows: list[Row]) -> str:
    """Return one line for each policy, over all cases."""
    names = [name for name in POLICIES if any(row["run"] == name for row in rows)]
    drawn = [row for row in rows if row["case"].isdigit()]
    lines = []
    for name in names:
        all_of_it = ratios(drawn, name)
        lines.append(
            [
                name,
                f"{median(all_of_it):.3f}",
                f"{max(all_of_it):.3f}",
                f"{sum(ratio > 1.05 for ratio in all_of_it)} of {len(all_of_it)}",
                str(sum(row["preemptions"] for row in drawn if row["run"] == name)),
            ]
        )
    named = [row for row in rows if not row["case"].isdigit()]
    fixed = [
        [
            row["case"], row["run"], f"{row['mean_completion_step']:.1f}",
            str(row["makespan"]),
        ]
        for row in named
    ]  # fmt: skip
    plain = sum(row["preemptions"] for row in drawn if row["run"] == "vLLM")
    return (
        "Backlogs with groups of shared prefixes, in vLLM with prefix caching on, "
        "blocks of 32 tokens; prefixes are 0 to 95 % of all prompt tokens, caches hold "
        "from little more than one request up to all of them. Answer "
        "lengths are known. Mean completion step over that of plain vLLM on the same "
        f"requests, which preempted {plain} times.\n\n"
        + markdown_table(
            ["policy", "median", "worst", "above 1.05", "preemptions"], lines
        )
        + "\n\n512 tokens in common, 8 of each request's own, answers of 24:\n\n"
        + markdown_table(["case", "run", "mean completion step", "last step"], fixed)
    )


SPEC = Spec("Policies where prefixes are cached", run, page, needs=("vllm",))
