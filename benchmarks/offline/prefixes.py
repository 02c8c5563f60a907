"""Backlogs whose prompts share prefixes: certified gaps, and other orders."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import EngineModel, Instance, bound, check, generate, solve
from sortedf.certificate import proven_bound
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.traces import read_trace
from sortedf.traces.prefix_ids import PrefixIds
from tests import naive

if TYPE_CHECKING:
    from sortedf import Schedule
    from sortedf.traces import Trace

SEEDS = (1, 2, 3)

TIME_LIMIT_S = 60.0

BUDGETS = (65_536, 131_072, 262_144)
"""Tokens of KV."""

MOONCAKE = "formats/mooncake_synthetic_head.jsonl"
"""300 requests of the synthetic Mooncake trace as published, with `hash_ids`."""

MOONCAKE_BUDGETS = (400_000, 1_600_000)

BLOCK = 16
"""Tokens of a block, as in vLLM."""

RIVALS = ("depth-first", "longest-prefix", "k-lpm", "svf")
"""Orders that `auto` is compared with, each with its best backfill window."""

WINDOWS = (0, 5, 20, 100)

TINY = 3000
"""Forests of up to 4 requests whose optimum is found by trying every start."""

TINY_BOUNDS = ("own-parts", "equal-charges", "split-prices", "joint-values")


def run(settings: Settings) -> list[Row]:
    """Solve every cell; every schedule and every certificate is checked."""
    journal = Journal("prefixes", settings)
    rows = [journal.row("tiny", partial(_tiny, settings.pick(TINY, 20)))]
    rows[0]["kind"] = "tiny"
    limit = settings.pick(int(TIME_LIMIT_S), 2)
    n = settings.pick(2000, 80)
    kinds = ("system-prompts", "document-questions", "few-shot", "samples")
    for kind in kinds[: settings.pick(4, 1)]:
        for budget in BUDGETS[: settings.pick(3, 1)]:
            for seed in SEEDS[: settings.pick(3, 1)]:
                trace = generate(kind, n, seed=seed)
                cell = partial(_cell, trace, budget, limit)
                row = journal.row(f"{kind}, {budget}, {seed}", cell)
                rows.append({**row, "kind": kind, "budget": budget, "seed": seed})
    for budget in MOONCAKE_BUDGETS[: settings.pick(2, 1)]:
        trace = read_trace(settings.data / MOONCAKE)
        row = journal.row(f"mooncake, {budget}", partial(_cell, trace, budget, limit))
        rows.append({**row, "kind": "Mooncake", "budget": budget, "seed": 0})
    return rows


def _cell(trace: Trace, budget: int, limit: int) -> Row:
    """Solve a backlog by all methods."""
    engine = EngineModel(budget, BLOCK, prefix_caching=True)
    instance, _ = trace.to_instance(engine=engine, backlog=True, drop_oversize=True)
    names = ("split-prices", "joint-values", "equal-charges")
    proven = {name: bound(instance, name, time_limit=limit) for name in names}
    for found in proven.values():
        assert found.certificate is not None, "all of them always have one"
        if proven_bound(instance, found.certificate) < found.value:
            raise RuntimeError(f"a certificate does not prove {found.value}")
    best = max(proven.values(), key=lambda found: found.value)
    n = instance.num_requests
    means, hits = {}, {}
    for method in (*RIVALS, "auto"):
        windows = (None,) if method == "auto" else WINDOWS
        results = [
            solve(instance, method, backfill=w, time_limit=limit, bound="none")
            for w in windows
        ]
        result = min(results, key=lambda result: result.tel)
        if not check(instance, result.schedule).feasible or result.tel < best.value:
            raise RuntimeError(f"{method}: {result.summary()}, bound {best.value}")
        means[method] = result.mean_latency
        hits[method] = hit_rate(result.schedule)
    return {
        "n": n,
        "mean": means,
        "hit_rate": hits,
        "bounds": {name: found.value / n for name, found in proven.items()},
    }


def hit_rate(schedule: Schedule) -> float:
    """Share of prompt tokens that a running request holds when a prompt starts.

    What stays in the cache although no running request holds it would add to it.
    """
    instance = schedule.instance
    shared = instance.prefixes
    if shared is None:
        return 0.0
    until = np.zeros(len(shared), dtype=np.int64)  # last step a node is held in
    found = 0
    for i in np.argsort(schedule.start, kind="stable").tolist():
        for node in shared.path(i):
            if until[node] > schedule.start[i]:
                found += int(shared.blocks[node]) * instance.engine.block_size
            until[node] = max(until[node], schedule.completion[i])
    return found / int(instance.prefill.sum())


def _tiny(count: int) -> Row:
    """Compare bounds and schedules with optima of tiny forests."""
    rng = np.random.default_rng(0)
    violations = infeasible = optimal = done = 0
    tight = dict.fromkeys(TINY_BOUNDS, 0)
    while done < count:
        instance = _tiny_instance(rng)
        if instance is None:
            continue
        done += 1
        least = naive.best_tel(instance)
        result = solve(instance, bound="none")
        report = check(instance, result.schedule)
        infeasible += not report.feasible or report.tel < least
        optimal += result.tel == least
        for name in TINY_BOUNDS:
            found = bound(instance, name, time_limit=0.02)
            assert found.certificate is not None, "all of these bounds have one"
            proven = proven_bound(instance, found.certificate)
            violations += max(found.value, proven) > least
            tight[name] += found.value == least
    return {
        "forests": count,
        "violations": violations,
        "infeasible": infeasible,
        "optimal": optimal,
        "tight": tight,
    }


def _tiny_instance(rng: np.random.Generator) -> Instance | None:
    """Draw up to 4 prompts over an alphabet of two; None if they share nothing."""
    n = int(rng.integers(2, 5))
    prompts = [rng.integers(0, 2, rng.integers(1, 7)).tolist() for _ in range(n)]
    decode = rng.integers(1, 5, n)
    block = int(rng.integers(1, 4))
    known: dict[tuple[int, ...], int] = {}
    lists = [
        [known.setdefault(tuple(own[: k + 1]), len(known)) for k in range(len(own))]
        for own in prompts
    ]
    prefill = np.array([len(own) for own in prompts])
    ids = PrefixIds.of_lists(lists, 1)
    shared = SharedPrefixes.of_prefix_ids(ids, prefill, block)
    if shared is None:
        return None
    peak = int((-(-(prefill + decode) // block) * block).max())
    places = None if rng.random() < 0.7 else int(rng.integers(1, 4))
    engine = EngineModel(
        peak + int(rng.integers(0, peak)), block, places, prefix_caching=True
    )
    return Instance(prefill, decode, engine=engine, prefixes=shared)


def gap(row: Row) -> float:
    """Certified gap of `auto`."""
    return float(row["mean"]["auto"] / max(row["bounds"].values())) - 1


def page(rows: list[Row]) -> str:
    """Lay out gaps, factors and hit rates, medians over seeds."""
    tiny, *cells = rows
    gaps = [gap(row) for row in cells]
    body = [
        f"n = {max(row['n'] for row in cells):,} requests (300 of Mooncake), all there "
        f"at the start, blocks of {BLOCK} tokens. The gap is that of `auto`, "
        "certified. Factors are the mean latency of other orders, each with its best "
        "backfill "
        "window, over that of `auto`. The hit rate is the share of prompt tokens held "
        "by running requests when a prompt starts.",
        f"Certified gap: {median(gaps):.1%} in the median of all cells and draws, "
        f"{min(gaps):.1%} to {max(gaps):.1%}.",
        _table(cells),
        f"{tiny['forests']:,} forests of up to 4 requests against brute force: "
        f"{tiny['violations']} bounds or certificates above the optimum, "
        f"{tiny['infeasible']} infeasible schedules; `auto` is optimal in "
        f"{tiny['optimal'] / tiny['forests']:.1%}, `joint-values` tight in "
        f"{tiny['tight']['joint-values'] / tiny['forests']:.1%}.",
    ]
    return "\n\n".join(body)


def _table(rows: list[Row]) -> str:
    lines = []
    for kind, budget in dict.fromkeys((row["kind"], row["budget"]) for row in rows):
        here = [row for row in rows if (row["kind"], row["budget"]) == (kind, budget)]
        factors = [
            median(row["mean"][method] / row["mean"]["auto"] for row in here)
            for method in RIVALS
        ]
        hits = [
            median(row["hit_rate"][method] for row in here)
            for method in ("auto", "depth-first")
        ]
        lines.append(
            [
                kind,
                f"{budget:,}",
                f"{median(row['mean']['auto'] for row in here):,.1f}",
                f"{median(map(gap, here)):.1%}",
                *(f"{factor:.2f}" for factor in factors),
                *(f"{hit:.0%}" for hit in hits),
            ]
        )
    columns = ["prompts", "KV budget", "mean latency", "gap", *RIVALS]
    return markdown_table([*columns, "hits", "hits depth-first"], lines)


SPEC = Spec("Shared prefixes, offline", run, page, needs=("data",))
