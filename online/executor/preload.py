"""Has a policy's kernels ready before the first request comes.

Numba takes seconds to compile them where it has not yet, and a fifth of a second to
load them where it has: time in which the requests of a server would stand still.
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
    from online.rules import StepRules
    from online.state import Policy
    from sortedf.step_time import StepTime

CROWD, LATER = 160, 40
"""Requests that come at once, more than policies treat one by one, and after them."""

BLOCKS = 64
"""Blocks of the cache: more than policies treat one by one start, most wait."""


def preload(policy: Policy, rules: StepRules, step_time: StepTime) -> None:
    """Run some requests by a policy, which is used up, in the step engine.

    What goes wrong with the policy is logged, as in an engine.

    Parameters
    ----------
    policy : Policy
        A fresh object, for this alone.
    rules : StepRules
        The engine's, of which the cache is made smaller.
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
    """Use what only an engine uses: its bookkeeping of who runs."""
    running = Running(table, 4)
    running.start([0, 1])
    running.each_made_one(1)
    running.catch_up([1])
    ones, resumed, after = np.ones((3, 4), dtype=np.int64)
    out = np.zeros(k.NUM_RESULTS, dtype=np.int64)
    k.advance(table.ints, running.ids(), ones, 1, 2, resumed, after, out)
