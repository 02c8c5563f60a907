"""The gain from ranking prompts by answer length, by the rank's Kendall's tau_b."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec
from benchmarks.ranking.parts.rank_worth_case import (
    BURST,
    NEVER_S,
    PAPERS_S,
    Case,
    key,
    limit_of,
)
from benchmarks.ranking.parts.rank_worth_figures import figures
from benchmarks.ranking.parts.rank_worth_limit import limits, work_s
from benchmarks.ranking.parts.rank_worth_page import page
from benchmarks.ranking.parts.rank_worth_traces import (
    TARGETS,
    WORKLOADS,
    drawn,
    lengths,
)
from online.arrivals import arrive
from online.noisy_ranks import noisy_rank
from online.ranking.length_calibration import calibrate
from sortedf.load import rate_of_load

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGETS_BY_LOAD = (0.0, 0.2, 0.5, 0.8, 1.0)
SEEDS = (1, 2, 3)

BY_LENGTH: dict[str, tuple[str, dict[str, Any], float]] = {
    "rank only": ("pars", {"starvation_s": NEVER_S}, 0.5),
    "svf": ("svf", {"admission": "engine"}, 0.5),
    "svf, look-ahead": ("svf", {}, 0.5),
    "sorted-f-online": ("sorted-f-online", {}, 0.5),
    "sorted-f-amin": ("sorted-f-amin", {"factor": 2.0}, 0.25),
}
"""Policies with lengths made from a rank: name, options, and the quantile of the length
that a score stands for."""


def run(settings: Settings) -> list[Row]:
    """Simulate every order of every workload; a row is one run."""
    journal = Journal("rank_worth", settings)
    rows: list[Row] = []
    seeds = SEEDS[: settings.pick(3, 1)]
    for name in list(WORKLOADS)[: settings.pick(len(WORKLOADS), 1)]:
        rows.append(_limit(settings, name))
        for seed in seeds:
            case = _burst(settings, name, seed)
            rows += _by_noise(settings, journal, case)
            rows += _by_length(settings, journal, case)
        for seed in seeds:
            for case in _loads(settings, _burst(settings, name, seed)):
                rows += _by_noise(settings, journal, case)
    return rows


def _limit(settings: Settings, name: str) -> Row:
    """Compute the oracle's gain in an infinite burst."""
    workload = WORKLOADS[name]
    prefill, decode = lengths(settings.data, workload)
    engine = workload.engine
    work = work_s(prefill, decode, engine.rules, engine.step_time)
    return {"part": "limit", "workload": name, **limits(decode, work)}


def _burst(settings: Settings, name: str, seed: int) -> Case:
    """Draw the requests; all arrive at once."""
    workload = WORKLOADS[name]
    n = settings.pick(BURST, 400)
    rng = np.random.default_rng([seed, n])
    trace = drawn(*lengths(settings.data, workload), n, rng)
    where = {
        "part": "noise", "workload": name, "load": None, "seed": seed, "n": n,
        "kv_budget": workload.engine.rules.kv_budget,
        "engine": workload.engine.preset,
        "mean_inverse": float((1 / trace.decode).mean()),
        "spread": float(trace.decode.std() / trace.decode.mean()),
    }  # fmt: skip
    return Case(trace, workload, where)


def _loads(settings: Settings, burst: Case) -> Iterator[Case]:
    """Give the same requests Poisson arrivals."""
    workload, seed = burst.workload, burst.where["seed"]
    rules, step_time = workload.engine.rules, workload.engine.step_time
    for load in workload.loads[: settings.pick(len(workload.loads), 1)]:
        rate = rate_of_load(load, burst.trace, rules, step_time)
        trace = arrive(burst.trace, "poisson", rate=rate, seed=seed)
        yield Case(trace, workload, burst.where | {"load": load})


def _by_noise(settings: Settings, journal: Journal, case: Case) -> Iterator[Row]:
    """FCFS, SVF with true lengths, and ranks with noise; limits for a burst only."""
    where, is_burst = case.where, case.where["load"] is None
    svf = partial(case.row, "svf", {"admission": "engine"}, order="svf")
    yield journal.row(key(where, "fcfs"), partial(case.row, "fcfs", {}, order="fcfs"))
    yield journal.row(key(where, "svf"), svf)
    targets = TARGETS if is_burst else TARGETS_BY_LOAD
    limited = case.workload.limited if is_burst else ()
    for target in targets if not settings.quick else targets[:: len(targets) - 1]:
        rng = np.random.default_rng([where["seed"], 7])
        score = noisy_rank(case.trace.decode, target, rng)
        for limit in (NEVER_S, PAPERS_S) if target in limited else (NEVER_S,):
            what: Row = {"order": "rank", "target": target, "limit_s": limit_of(limit)}
            options = {"starvation_s": limit}
            make = partial(case.row, "pars", options, score, **what)
            yield journal.row(key(where, "rank", target, f"{limit:g} s"), make)


def _by_length(settings: Settings, journal: Journal, case: Case) -> Iterator[Row]:
    """Policies that need a length, with one made from a rank with noise.

    Scores are mapped to lengths by other requests with the same noise.
    """
    workload = case.workload
    where = case.where | {"part": "lengths"}
    n = where["n"]
    rng = np.random.default_rng([where["seed"], 8])
    others = drawn(*lengths(settings.data, workload), n, rng)
    both = np.concatenate([case.trace.decode, others.decode])
    for target in (0.5, 0.8)[: settings.pick(2, 1)]:
        scores = noisy_rank(both, target, rng)
        known = calibrate(scores[n:], others.decode)
        for name, (policy, options, quantile) in BY_LENGTH.items():
            predicted = np.rint(known.lengths(scores[:n], quantile)).astype(np.int64)
            make = partial(
                Case(case.trace, workload, where).row,
                policy, options, scores[:n], predicted, order=name, target=target,
            )  # fmt: skip
            yield journal.row(key(where, name, target), make)


SPEC = Spec(
    "What a rank by answer length is worth", run, page, figures, needs=("data",)
)
