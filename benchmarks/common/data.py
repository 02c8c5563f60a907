"""Instances for benchmarks: mixes of real traces, or generated ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sortedf import Instance, generate
from sortedf.traces import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

KV_BUDGET = 16492
"""Tokens; the Sorted-F paper's setting."""

LARGE_KV_BUDGET = 131_072
"""Tokens; for traces with requests above `KV_BUDGET`."""

CHAT = "lmsys_chat_first_turn"
DOCUMENTS = "arxiv_summarization_4k"


class MissingDataError(RuntimeError):
    """The folder of real traces is missing."""


@cache
def trace(data: Path, name: str) -> Trace:
    """Read one real trace."""
    path = data / "traces" / f"{name}.csv.gz"
    if not path.is_file():
        raise MissingDataError(
            f"{path} is not there; name the folder of traces by --data or by the "
            "environment variable SORTEDF_DATA."
        )
    return read_trace(path)


def sample(
    data: Path, name: str, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw `n` requests with replacement; shape (n, 2), columns s and o."""
    source = trace(data, name)
    rows = rng.integers(0, source.num_requests, n)
    return np.stack([source.prefill[rows], source.decode[rows]], axis=1)


def mix(
    data: Path, n: int, long_share: float, seed: int, kv_budget: int = KV_BUDGET
) -> Instance:
    """Backlog of chats and documents in random order."""
    rng = np.random.default_rng(seed)
    num_long = round(n * long_share)
    requests = np.concatenate(
        [
            sample(data, CHAT, n - num_long, rng),
            sample(data, DOCUMENTS, num_long, rng),
        ]
    )
    rng.shuffle(requests)
    return Instance(requests[:, 0], requests[:, 1], kv_budget)


def single(data: Path, name: str, n: int, seed: int, kv_budget: int) -> Instance:
    """Backlog of requests of one trace."""
    requests = sample(data, name, n, np.random.default_rng(seed))
    return Instance(requests[:, 0], requests[:, 1], kv_budget)


TINY_MODEL_LEN = 1024
"""Longest prompt plus answer that the tiny model of engine runs accepts."""


def scaled_mix(n: int, seed: int, *, rate: float | None = None) -> Instance:
    """Draw the 80/20 mix, scaled to the tiny model's limit; arrivals in steps."""
    drawn = generate("mix", n, long_share=0.2, seed=seed, rate=rate)
    prefill = np.minimum(drawn.prefill // 12 + 1, TINY_MODEL_LEN // 2)
    decode = np.minimum(drawn.decode // 8 + 1, TINY_MODEL_LEN // 2 - 1)
    arrival = np.floor(drawn.arrival_s).astype(np.int64)
    return Instance(prefill, decode, 10**6, arrival)


MIXES: dict[str, Callable[[Path, int, int], Instance]] = {
    "80/20": lambda data, n, seed: mix(data, n, 0.2, seed),
    "50/50": lambda data, n, seed: mix(data, n, 0.5, seed),
    "95/5": lambda data, n, seed: mix(data, n, 0.05, seed),
    "Azure conversation": lambda data, n, seed: single(
        data, "azure_2023_conv", n, seed, KV_BUDGET
    ),
    "Azure code": lambda data, n, seed: single(
        data, "azure_2023_code", n, seed, KV_BUDGET
    ),
    "reasoning": lambda data, n, seed: single(
        data, "servegen_deepseek_r1_resampled", n, seed, LARGE_KV_BUDGET
    ),
}
"""Instances by name: functions of the data folder, n and a seed."""
