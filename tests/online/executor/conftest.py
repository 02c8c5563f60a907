"""A real vLLM engine for tests: started once for each setting, closed at the end."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from online.executor.door import installed_version
from sortedf import Instance
from sortedf.generator import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from online.executor.vllm_engine import VllmEngine

MAX_MODEL_LEN = 1024


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs vLLM where it is not installed, and mark it."""
    for item in items:
        if "real_engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            if installed_version() is None:
                item.add_marker(pytest.mark.skip(reason="vLLM is not installed"))


@pytest.fixture
def real_engine() -> Iterator[Callable[..., VllmEngine]]:
    """Start engines as `real_engine(table, policy, kv_budget=..., ...)`."""
    from online.executor.vllm_engine import VllmEngine, VllmSettings

    started: list[VllmEngine] = []

    def start(table, policy, *, prompts=None, **settings):
        settings.setdefault("max_model_len", MAX_MODEL_LEN)
        settings.setdefault("max_num_seqs", 64)
        engine = VllmEngine(table, policy, VllmSettings(**settings), prompts=prompts)
        started.append(engine)
        return engine

    yield start
    for engine in started:
        engine.close()
    gc.collect()


def scaled_mix(n: int, seed: int, *, rate: float | None = None) -> Instance:
    """Draw the 80/20 mix, scaled to the tiny model's limits."""
    trace = generate("mix", n, long_share=0.2, seed=seed, rate=rate)
    prefill = np.minimum(trace.prefill // 12 + 1, MAX_MODEL_LEN // 2)
    decode = np.minimum(trace.decode // 8 + 1, MAX_MODEL_LEN // 2 - 1)
    arrival = np.floor(trace.arrival_s).astype(np.int64)
    return Instance(prefill, decode, 10**6, arrival)
