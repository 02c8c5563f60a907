"""What a client gains by lying about its answers, and what the others lose."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.online.parts.liars import (
    LIES,
    Tenants,
    run_simulated,
    run_vllm,
    tenants,
)
from online.executor.vllm_version import installed_version

if TYPE_CHECKING:
    from collections.abc import Callable

POLICIES = ("svf", "mc-sf", "srpt", "hrrn", "svf-boost", "pars")
LOADS = (0.8, 1.0, 1.3)
SEEDS = (1, 2)
ENGINE_POLICIES = ("svf", "srpt")
WORST = 1.2
"""The protected figure may be this much of the better of honest hints and FCFS."""


def run(settings: Settings) -> list[Row]:
    """Every policy with every lie at every load, with and without protection."""
    journal = Journal("trust", settings)
    n = settings.pick(800, 40)
    loads = LOADS[2:] if settings.quick else LOADS
    policies = POLICIES[:1] if settings.quick else POLICIES
    rows = []
    for seed in SEEDS[:1] if settings.quick else SEEDS:
        for load in loads:
            made = partial(tenants, n, load, seed)
            rows += _cases(journal, "simulator", policies, load, seed, made)
    if installed_version() is not None and not settings.quick:
        made = partial(tenants, 120, 1.3, 1, small=True)
        rows += _cases(journal, "vLLM", ENGINE_POLICIES, 1.3, 1, made)
    return rows


def _cases(
    journal: Journal,
    engine: str,
    policies: tuple[str, ...],
    load: float,
    seed: int,
    make: Callable[[], Tenants],
) -> list[Row]:
    lies = LIES if engine == "simulator" else {name: LIES[name] for name in ("1",)}
    cases = [("fcfs", "none", "on")]
    for policy in policies:
        cases += [(policy, "none", trust) for trust in ("on", "corrected")]
        cases += [(policy, lie, trust) for lie in lies for trust in ("on", "corrected")]
    rows = []
    for policy, lie, trust in cases:
        where = {"engine": engine, "load": load, "seed": seed, "policy": policy}
        key = f"{engine}, {load:g}, {seed}, {policy}, {lie}, {trust}"
        measure = partial(_measured, make, where, policy, lie, trust)
        rows.append(journal.row(key, measure))
    return rows


def _measured(
    make: Callable[[], Tenants], where: Row, policy: str, lie: str, trust: str
) -> Row:
    served = run_simulated if where["engine"] == "simulator" else run_vllm
    many = make()
    latency = served(many, policy, lie, trust)[~many.is_liar]
    return {
        **where,
        "lie": lie,
        "trust": trust,
        "mean": float(latency.mean()),
        "p99": float(np.percentile(latency, 99)),
    }


def page(rows: list[Row]) -> str:
    """One table for each engine and figure: honest clients' ratio to what is fair."""
    parts = [
        "Ten clients of one server; one of them, with 70 % of the work, has answers of "
        "1,000 tokens and lies about them: it says 1, half, ten times or a random "
        "length, or says 1 only in the second half of the run ('later'). The others "
        "say the truth. Figures are of the *honest* clients' latency, medians of the "
        "seeds, divided by the better of two: the same policy with honest hints from "
        f"all, or FCFS. With protection it should be at most {WORST:g}. 'none' is without "
        "a lie: the price of the protection itself.",
    ]
    for engine in dict.fromkeys(row["engine"] for row in rows):
        mine = [row for row in rows if row["engine"] == engine]
        for figure in ("mean", "p99"):
            ratios = _ratios(mine, figure)
            kept = [r for key, r in ratios.items() if key[3] == "corrected"]
            held = sum(ratio <= WORST for ratio in kept)
            parts += [
                f"## {engine}: {figure}",
                "Without protection / with `trust_hints` corrected. The latter is at "
                f"most {WORST:g} in {held} of {len(kept)} cases, at most "
                f"{max(kept):.2f}.",
                _table(ratios),
            ]
    return "\n\n".join(parts)


Key = tuple[float, str, str, str]


def _ratios(rows: list[Row], figure: str) -> dict[Key, float]:
    """Median ratio by load, policy, lie and trust."""
    value = {
        (row["load"], row["seed"], row["policy"], row["lie"], row["trust"]): row[figure]
        for row in rows
    }
    found: dict[Key, list[float]] = {}
    for (load, seed, policy, lie, trust), own in value.items():
        if policy == "fcfs":
            continue
        fair = min(
            value[load, seed, policy, "none", "on"],
            value[load, seed, "fcfs", "none", "on"],
        )
        found.setdefault((load, policy, lie, trust), []).append(own / fair)
    return {key: float(np.median(ratios)) for key, ratios in found.items()}


def _table(ratios: dict[Key, float]) -> str:
    lies = list(dict.fromkeys(key[2] for key in ratios))
    lines = []
    for load, policy in dict.fromkeys(key[:2] for key in ratios):
        cells = [
            f"{ratios[load, policy, lie, 'on']:.2f} / "
            f"{ratios[load, policy, lie, 'corrected']:.2f}"
            for lie in lies
        ]
        lines.append([f"{policy}, {load:g}", *cells])
    return markdown_table(["policy, load", *lies], lines)


SPEC = Spec("Clients that lie about their answers", run, page)
