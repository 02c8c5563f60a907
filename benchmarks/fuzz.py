"""Random instances through every method, the checker and every bound."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from sortedf import BOUNDS, METHODS, EngineModel, Instance, bound, check, solve
from sortedf.registry import load_plugins

SEED = 20240521
MAX_REQUESTS = 60

SLOW_METHODS = {"sorted-lp", "alpha-points", "lp-swap", "milp"}
FAST_BOUNDS = {"fluid"}
"""The others climb or solve a linear program."""

SLOW_EVERY = 200
"""Instances from one that the slow ones try to the next."""


def run(settings: Settings) -> list[Row]:
    """Try every method on each instance; raise at the first violation."""
    count = settings.pick(100_000, 30)
    rng = np.random.default_rng(SEED)
    load_plugins()
    names = [name for name in METHODS if _suits(name)]
    tried: Counter[str] = Counter()
    began = time.perf_counter()
    for k in range(count):
        instance = random_instance(rng)
        everything = k % SLOW_EVERY == 0
        provers = BOUNDS if everything else FAST_BOUNDS
        floor = max(bound(instance, name).value for name in provers)
        for name in names:
            backfill = int(rng.integers(0, 4))
            if name in SLOW_METHODS and not everything:
                continue
            result = solve(instance, name, backfill=backfill, seed=k, bound="none")
            report = check(instance, result.schedule)
            if not report.feasible or not floor <= report.tel == result.tel:
                raise RuntimeError(f"instance {k}, {name}: {report}, bound {floor}")
            tried[name] += 1
    return [
        {
            "instances": count,
            "seed": SEED,
            "methods": len(names),
            "schedules": tried.total(),
            "schedules_by_method": dict(tried),
            "violations": 0,
            "runtime_s": time.perf_counter() - began,
        }
    ]


def _suits(name: str) -> bool:
    limit = METHODS[name].max_requests
    return limit is None or limit >= MAX_REQUESTS


def random_instance(rng: np.random.Generator) -> Instance:
    """Draw up to 60 requests, tight or loose, with arrivals, blocks and caps."""
    n = int(rng.integers(1, MAX_REQUESTS + 1))
    longest = int(rng.choice([3, 10, 40]))
    prefill = rng.integers(1, longest + 1, n)
    decode = rng.integers(1, longest + 1, n)
    arrival = rng.integers(0, 5 * longest, n) if rng.random() < 0.5 else None
    engine = EngineModel()
    if rng.random() < 0.3:
        engine = EngineModel(
            block_size=int(rng.choice([1, 2, 4, 16])),
            max_num_seqs=int(rng.integers(1, 10)),
            max_batched_tokens=int(rng.integers(longest, 4 * longest)),
        )
    largest = engine.round_up(int((prefill + decode).max()))
    budget = int(largest * rng.uniform(1, 6))
    return Instance(prefill, decode, budget, arrival, engine)


def page(rows: list[Row]) -> str:
    """One line: how many, from which seed, and that nothing was found."""
    (row,) = rows
    columns = ["instances", "seed", "methods", "schedules", "violations", "seconds"]
    values = [
        f"{row['instances']:,}",
        str(row["seed"]),
        str(row["methods"]),
        f"{row['schedules']:,}",
        str(row["violations"]),
        f"{row['runtime_s']:.0f}",
    ]
    return "\n\n".join(
        [
            "Random instances (n up to 60, half of them with arrivals, some with "
            "blocks and caps) through every method with a random backfill window. A "
            "violation is a schedule that the independent checker refuses, whose TEL "
            "it recomputes differently, or that is below a lower bound. Methods and "
            f"bounds that climb or solve a linear program run on every {SLOW_EVERY}th "
            "instance.",
            markdown_table(columns, [values]),
        ]
    )


add("fuzz", Spec("Random instances through every method", run, page))
