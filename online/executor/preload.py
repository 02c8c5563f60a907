"""Loads a policy's kernels before the first request arrives.

Numba takes seconds to compile them the first time, and a fifth of a second to load them
later; otherwise the first requests of a server would wait for this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from online import step_kernels as k
from online.driver import drive
from online.executor.fallback_policy import FallbackPolicy
from online.executor.running import Running
from online.requests import RequestTable
from online.step_engine import StepEngine

if TYPE_CHECKING:
    from online.state import Policy
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

CROWD, LATER = 160, 40
"""Requests that arrive at once and afterwards: enough to use the array code paths."""

BLOCKS = 64
"""Blocks of the cache, so that many requests start but most wait."""


def preload(policy: Policy, rules: EngineModel, step_time: StepTime) -> None:
    """Run some requests by a policy in the step engine.

    Failures of the policy are logged, as in an engine.

    Parameters
    ----------
    policy : Policy
        A new object, used only for this.
    rules : EngineModel
        The engine's rules; the run uses a smaller cache.
    step_time : StepTime
    """
    size = rules.block_size
    few = min(BLOCKS, rules.num_blocks)
    draw = np.random.default_rng(0)
    longest = max(few * size // 64, 1)
    n = CROWD + LATER
    prefill, decode = draw.integers(1, longest + 1, (2, n))
    arrival_s = step_time.constant_s * np.maximum(0, np.arange(n) - CROWD)
    table = RequestTable.of_arrays(prefill, decode, arrival_s, score=draw.random(n))
    small = replace(rules, kv_budget=few * size)
    drive(
        StepEngine(table, small, FallbackPolicy(policy), step_time),
        step_time=step_time,
    )
    _preload_running(table)


def _preload_running(table: RequestTable) -> None:
    """Compile the kernels of `Running`, which only a real engine uses."""
    running = Running(table, 4)
    running.start([0, 1])
    running.each_made_one(1)
    running.catch_up([1])
    ones, resumed, after = np.ones((3, 4), dtype=np.int64)
    out = np.zeros(k.NUM_RESULTS, dtype=np.int64)
    k.advance(table.ints, running.ids(), ones, 1, 2, resumed, after, out)
