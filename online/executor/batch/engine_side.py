"""The scheduler classes in the engine's own process.

It must not outlive a run: vLLM starts the engine as a child and ends it in good order,
but a run that is killed cannot do so, and its engine would wait for requests for ever,
with all its memory. And it must be ready when the requests come: compiled kernels are
loaded while the engine starts.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from online.driver import drive
from online.executor.scheduler_options import SchedulerOptions, scheduler_options
from online.executor.vllm_scheduler import AsyncPolicyScheduler, PolicyScheduler
from online.requests import RequestTable
from online.step_engine import StepEngine

LOOK_EVERY_S = 0.5
"""Seconds between two looks at the parent."""


class BatchScheduler(PolicyScheduler):
    """As its base, warm, in a process that ends with the one that started it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)
        warm_up(self)


class AsyncBatchScheduler(AsyncPolicyScheduler):
    """As its base, warm, in a process that ends with the one that started it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)
        warm_up(self)


def warm_up(scheduler: Any) -> None:
    """Let the policy run a few short requests in the step engine, as a rehearsal."""
    options = SchedulerOptions.of(scheduler_options(scheduler.vllm_config))
    policy = options.make_policy()
    count = 4
    ones = np.ones(count, dtype=np.int64)
    table = RequestTable.of_arrays(ones, 2 * ones, np.zeros(count))
    rules = replace(scheduler.rules, max_num_seqs=2)  # so that some wait
    # A policy that fails here does so again where it counts, and is reported there.
    with suppress(Exception):
        drive(StepEngine(table, rules, policy))


def end_with_parent() -> None:
    """End this process soon after its parent; nothing happens in one without."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
