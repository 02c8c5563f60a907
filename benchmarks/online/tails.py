"""Means and tails on real traces: UniBoost's claims and ablations, and ours beside it.

Every policy of the papers and ours, on windows of real traces at three loads, under
vLLM's rules and a roofline's step times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.common.journal import Journal
from benchmarks.common.online_runs import STEP_TIME, as_row, vllm_rules, window
from benchmarks.common.registry import Row, Settings, Spec
from benchmarks.online.parts.tails_figures import figures
from benchmarks.online.parts.tails_page import NOISE, OURS, THEIRS, page
from online.named import Named, parse_many, parse_named
from online.slo import tightest_limit_s
from online.sweep import Run, Setting, execute

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADS = (0.7, 1.0, 1.3)
GAMMAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Workload:
    """Windows of a trace, on an engine.

    Attributes
    ----------
    trace : str
    num_requests : int
        In each window.
    kv_budget : int
    arrivals : str
        "trace" replays the trace's own, sped up to the load.
    windows : int
        How many, one after the other.
    """

    trace: str
    num_requests: int
    kv_budget: int
    arrivals: str
    windows: int


WORKLOADS = {
    "Azure conversation": Workload("azure_2023_conv", 1000, 65_536, "trace", 3),
    "Azure code": Workload("azure_2023_code", 1000, 65_536, "trace", 3),
    "ShareGPT": Workload("sharegpt_8k", 500, 65_536, "poisson", 1),
    "LMSYS chat": Workload("lmsys_chat_first_turn", 1000, 16_384, "poisson", 1),
    "DeepSeek-R1 service": Workload(
        "servegen_deepseek_r1_resampled", 300, 65_536, "poisson", 1
    ),
    "o1-mini planning": Workload("reasoning_o1_mini", 250, 65_536, "poisson", 1),
}


def run(settings: Settings) -> list[Row]:
    """Simulate every policy at every load, window by window; then boosts over gamma."""
    journal = Journal("tails", settings)
    return [journal.row(key, make) for key, make in _cells(settings)]


def _cells(settings: Settings) -> Iterator[tuple[str, partial[Row]]]:
    loads = LOADS[1:2] if settings.quick else LOADS
    gammas = GAMMAS[2:4] if settings.quick else GAMMAS
    fixed = [f"uniboost:gamma={gamma}" for gamma in gammas]
    for name, workload in WORKLOADS.items():
        for seed in range(1, 1 + settings.pick(workload.windows, 1)):
            setting = _setting(settings, name, seed)
            for load in loads:
                for policy in (*THEIRS, *OURS):
                    yield _cell(setting, name, load, policy, seed, "policies")
            for policy in fixed if seed == 1 else ():
                yield _cell(setting, name, 1.0, policy, seed, "gamma")


def _setting(settings: Settings, name: str, seed: int) -> Setting:
    workload = WORKLOADS[name]
    n = settings.pick(workload.num_requests, 10)
    return Setting(
        window(settings.data, workload.trace, n, seed),
        vllm_rules(workload.kv_budget),
        STEP_TIME,
        Named(workload.arrivals),
        drop_oversize=True,
        keep_logs=True,
    )


def _cell(
    setting: Setting, workload: str, load: float, policy: str, seed: int, part: str
) -> tuple[str, partial[Row]]:
    if policy == "pars":
        setting = replace(setting, noise=parse_named(NOISE))
    (named,) = parse_many(policy)
    run = Run(named, load, seed=seed)
    key = f"{part}, {workload}, {load:g}, {policy}, {seed}"
    return key, partial(_measured, setting, run, workload, part)


def _measured(setting: Setting, run: Run, workload: str, part: str) -> Row:
    outcome = execute(setting, run)
    assert outcome.log is not None
    limit = tightest_limit_s(outcome.log, "TTFT")
    return as_row(outcome, workload=workload, part=part, ttft_limit_99=limit)


SPEC = Spec(
    "Means and tails on real traces: UniBoost's claims, and ours",
    run,
    page,
    figures,
    needs=("data",),
)
