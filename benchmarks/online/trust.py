"""What a client gains by lying about its answers, and what the others lose."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.online.parts.liars import (
    FLOOR,
    LIES,
    PROTECTIONS,
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
SEEDS = (1,)
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
            stream = partial(tenants, n, load, seed)
            rows += _cases(journal, "simulator", policies, load, seed, stream)
    if installed_version() is not None and not settings.quick:
        stream = partial(tenants, 120, 1.3, 1, small=True)
        rows += _cases(journal, "vLLM", ENGINE_POLICIES, 1.3, 1, stream)
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
        cases += [(policy, *both) for both in product(("none", *lies), PROTECTIONS)]
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
    """For each engine and figure: honest clients against what is fair, and FCFS."""
    parts = [
        "Ten clients of one server; one of them, with 70 % of the work, has answers of "
        "1,000 tokens (200 in vLLM) and lies about them: it says 1, half, ten times or "
        "a random length, or says 1 only in the second half of the run ('later'). The "
        "others say the truth. Figures are of the *honest* clients' latency in steps.",
        "Each cell is without protection / with `trust_hints` corrected / with hints "
        f"believed and `max_passed` = {FLOOR:g}. The column 'none' is without a lie: "
        "the price of the protection itself.",
    ]
    for engine in dict.fromkeys(row["engine"] for row in rows):
        mine = [row for row in rows if row["engine"] == engine]
        for figure in ("mean", "p99"):
            fair, fcfs = _ratios(mine, figure), _ratios(mine, figure, to_fcfs=True)
            corrected = [fair[key] for key in fair if key[3] == "corrected"]
            held = sum(ratio <= WORST for ratio in corrected)
            parts += [
                f"## {engine}: {figure}",
                "Divided by the better of two: the same policy with honest hints from "
                f"all, or FCFS. With corrected hints it should be at most {WORST:g}: "
                f"so it is in {held} of {len(corrected)} cases, and at most "
                f"{max(corrected):.2f}.",
                _table(fair),
                "Divided by FCFS, at most, over all loads and lies: "
                + ", ".join(f"{_most(fcfs, name):.2f} ({name})" for name in PROTECTIONS)
                + ".",
            ]
    return "\n\n".join(parts)


Key = tuple[float, str, str, str]


def _ratios(rows: list[Row], figure: str, *, to_fcfs: bool = False) -> dict[Key, float]:
    """Median ratio by load, policy, lie and protection."""
    value = {
        (row["load"], row["seed"], row["policy"], row["lie"], row["trust"]): row[figure]
        for row in rows
    }
    found: dict[Key, list[float]] = {}
    for (load, seed, policy, lie, trust), own in value.items():
        if policy == "fcfs":
            continue
        fair = value[load, seed, "fcfs", "none", "on"]
        if not to_fcfs:
            fair = min(fair, value[load, seed, policy, "none", "on"])
        found.setdefault((load, policy, lie, trust), []).append(own / fair)
    return {key: float(np.median(ratios)) for key, ratios in found.items()}


def _most(ratios: dict[Key, float], name: str) -> float:
    return max(ratio for key, ratio in ratios.items() if key[3] == name)


def _table(ratios: dict[Key, float]) -> str:
    lies = list(dict.fromkeys(key[2] for key in ratios))
    lines = []
    for load, policy in dict.fromkeys(key[:2] for key in ratios):
        cells = [
            " / ".join(f"{ratios[load, policy, lie, name]:.2f}" for name in PROTECTIONS)
            for lie in lies
        ]
        lines.append([f"{policy}, {load:g}", *cells])
    return markdown_table(["policy, load", *lies], lines)


SPEC = Spec("Clients that lie about their answers", run, page)
