"""Shared by the online benchmarks: engines, traces cut to size, and tables."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.data import CHAT, DOCUMENTS, trace
from sortedf.engine_model import EngineModel
from sortedf.step_time import PRESETS
from sortedf.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from benchmarks.common.registry import Row
    from online.sweep import RunOutcome

STEP_TIME = PRESETS["a100-llama-3-8b"]


def vllm_rules(kv_budget: int) -> EngineModel:
    """Rules of a vLLM server with its usual settings, with prefills in chunks."""
    return EngineModel.vllm(
        kv_budget, block_size=16, max_num_seqs=256, max_batched_tokens=2048
    )


def first(data: Path, name: str, n: int) -> Trace:
    """Cut a trace to its first `n` requests, with their arrivals."""
    whole = trace(data, name)
    return Trace(
        whole.prefill[:n], whole.decode[:n], whole.arrival_s[:n], name=whole.name
    )


def window(data: Path, name: str, n: int, k: int) -> Trace:
    """Cut the `k`-th `n` requests out of a trace, counted from 1, with their arrivals.

    Windows of a short trace share its rows: the last ones are moved to the front.
    """
    whole = trace(data, name)
    begin = (k - 1) * n % max(whole.num_requests - n + 1, 1)
    rows = slice(begin, begin + n)
    arrival_s = whole.arrival_s[rows]
    return Trace(
        whole.prefill[rows],
        whole.decode[rows],
        arrival_s - arrival_s[0],
        name=whole.name,
    )


def mixed(data: Path, n: int, long_share: float, seed: int = 1) -> Trace:
    """Chats and documents, drawn from real traces, in random order."""
    rng = np.random.default_rng(seed)
    parts = [
        (trace(data, CHAT), n - round(n * long_share)),
        (trace(data, DOCUMENTS), round(n * long_share)),
    ]
    pairs = np.concatenate(
        [
            np.stack([source.prefill, source.decode], axis=1)[
                rng.integers(0, source.num_requests, count)
            ]
            for source, count in parts
        ]
    )
    rng.shuffle(pairs)
    return Trace(pairs[:, 0], pairs[:, 1], name=f"{1 - long_share:.0%} chat")


def as_row(outcome: RunOutcome, **where: Any) -> Row:
    """Turn a run's figures into a raw row."""
    run = outcome.run
    return {
        **where,
        "policy": str(run.policy),
        "load": run.load,
        "seed": run.seed,
        **outcome.metrics.as_dict(),
    }


def middle(rows: Iterable[Row], figure: Callable[[Row], float]) -> float:
    """Median over rows, which differ in their seeds."""
    return median(figure(row) for row in rows)


def p99(what: str) -> Callable[[Row], float]:
    """Look up a row's 99th percentile of a figure."""
    return lambda row: float(row[what]["p99"])


def mean_latency(row: Row) -> float:
    """Look up a row's mean TTLT."""
    return float(row["mean_latency"])
