"""Random instances through the methods, the checker and every bound.

Every method for 60 requests takes part, under one of its names.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import BOUNDS, METHODS, EngineModel, Instance, Result, bound, check, solve
from sortedf.stop import Rounds

SEED = 20240521
MAX_REQUESTS = 60

BOUNDS_EVERY = 200
"""Every how many instances all bounds are checked."""

FAST_BOUNDS = {"fluid"}
"""For all instances; the other bounds climb or solve a linear program."""

EVERY = {
    "best-list": 5, "sorted-f-co-start": 5,
    "improve": 20, "auto": 20,
    "sorted-lp": 200, "alpha-points": 200, "lp-swap": 200,
}  # fmt: skip
"""Every how many instances a slow method runs; quick methods run on all."""


def run(settings: Settings) -> list[Row]:
    """Try the methods on each instance; raise at the first violation."""
    count = settings.pick(100_000, 30)
    rng = np.random.default_rng(SEED)
    names = [name for name in METHODS if _suits(name)]
    tried: Counter[str] = Counter()
    began = time.perf_counter()
    for k in range(count):
        instance = random_instance(rng)
        able = [name for name, each in BOUNDS.items() if each.takes(instance)]
        provers = FAST_BOUNDS if k % BOUNDS_EVERY else able
        floor = max(bound(instance, name).value for name in provers)
        for name in names:
            backfill = int(rng.integers(0, 4))
            if k % EVERY.get(name, 1):
                continue
            result = _solve(instance, name, backfill, seed=k)
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
    method = METHODS[name]
    if method.same_as is not None:
        return False  # it runs under its other name
    return method.max_requests is None or method.max_requests >= MAX_REQUESTS


def _solve(instance: Instance, name: str, backfill: int, *, seed: int) -> Result:
    """Solve by a method; one that searches chooses its windows and runs one round."""
    if not METHODS[name].searches:
        return solve(instance, name, backfill=backfill, seed=seed, bound="none")
    return solve(instance, name, seed=seed, bound="none", stop=Rounds(1))


def random_instance(rng: np.random.Generator) -> Instance:
    """Draw up to 60 requests, tight or loose, with arrivals, blocks and caps."""
    n = int(rng.integers(1, MAX_REQUESTS + 1))
    longest = int(rng.choice([3, 10, 40]))
    prefill = rng.integers(1, longest + 1, n)
    decode = rng.integers(1, longest + 1, n)
    arrival = rng.integers(0, 5 * longest, n) if rng.random() < 0.5 else None
    caps: dict[str, Any] = {}
    if rng.random() < 0.3:
        caps = {
            "block_size": int(rng.choice([1, 2, 4, 16])),
            "max_num_seqs": int(rng.integers(1, 10)),
            "max_batched_tokens": int(rng.integers(longest, 4 * longest)),
        }
        caps["max_num_seqs"] = min(caps["max_num_seqs"], caps["max_batched_tokens"])
    block = caps.get("block_size", 1)
    largest = -(-int((prefill + decode).max()) // block) * block
    engine = EngineModel(int(largest * rng.uniform(1, 6)), **caps)
    return Instance(prefill, decode, arrival=arrival, engine=engine)


def page(rows: list[Row]) -> str:
    """Lay out the counts, the seed, and the number of instances of each method."""
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
    tried = [
        [f"`{name}`", f"{count:,}"]
        for name, count in row["schedules_by_method"].items()
    ]
    return "\n\n".join(
        [
            "Random instances (n up to 60, half of them with arrivals, some with "
            "blocks and caps) through every method that is meant for 60 requests, "
            "with a random backfill window where it does not search. A violation is a "
            "schedule that the independent checker refuses, whose TEL it recomputes "
            "differently, or that is below a lower bound. What is slow runs on some of "
            "the instances only: methods as the second table says, bounds other than "
            f"the fluid one on every {BOUNDS_EVERY}th.",
            markdown_table(columns, [values]),
            markdown_table(["method", "schedules"], tried),
        ]
    )


SPEC = Spec("Random instances through the methods", run, page)
