"""Small engines for the claims about them: workloads, fluid sums and enumerations."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from sortedf.engine_model import EngineModel
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.step_time import StepTime
from tests.sortedf.engine_plan.brute import least_total

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

Lengths = list[tuple[int, int]]
"""Prompt and answer of each request."""


def workload(
    lengths: Lengths, engine: EngineModel, step_time: StepTime | None = None
) -> EngineWorkload:
    """Return a backlog; steps take a second each if no step time is given."""
    prefill, decode = zip(*lengths, strict=True)
    return EngineWorkload(prefill, decode, engine, (step_time or StepTime(1.0),))


def optimum(
    lengths: Lengths, engine: EngineModel, step_time: StepTime | None = None
) -> int:
    """Least total latency of all schedules with evictions, chunks and pauses."""
    return least_total(workload(lengths, engine, step_time))


def fluid_sum(works: Sequence[Fraction], speed: int = 1) -> Fraction:
    """Sum of mean busy times if the smallest work is served first at this speed."""
    done, total = Fraction(0), Fraction(0)
    for work in sorted(works):
        total += (done + work / 2) / speed
        done += work
    return total


def random_engine(rng: np.random.Generator, lengths: Lengths) -> EngineModel:
    """Draw limits under which each request can run."""
    size = int(rng.integers(1, 4))
    longest = max(s + o for s, o in lengths)
    blocks = -(-longest // size) + int(rng.integers(0, 3))
    chunked = bool(rng.integers(2))
    tokens = int(rng.integers(1 if chunked else longest, longest + 4))
    seqs = int(rng.integers(1, min(tokens, 3) + 1))
    return EngineModel.vllm(
        blocks * size, size, seqs, tokens,
        chunked_prefill=chunked,
        counts_new_token=bool(rng.integers(2)),
        eviction="recompute" if rng.integers(2) else "restart",
    )  # fmt: skip


def random_lengths(rng: np.random.Generator, n: int, longest: int) -> Lengths:
    """Draw prompts and answers from 1 to `longest`."""
    pairs = rng.integers(1, longest + 1, (n, 2)).tolist()
    return [(s, o) for s, o in pairs]


def dealt(lengths: Lengths, num_engines: int) -> Iterator[list[Lengths]]:
    """Every way to deal requests to engines."""
    for choice in product(range(num_engines), repeat=len(lengths)):
        yield [
            [pair for pair, at in zip(lengths, choice, strict=True) if at == engine]
            for engine in range(num_engines)
        ]
