"""Scheduler classes for the engine's own process.

The process must not outlive a run: vLLM starts the engine as a child and stops it, but
a run that is killed cannot do so, and its engine would wait for requests forever and
keep its memory. And it must be ready for the first requests: compiled kernels are
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
"""Seconds between two checks of the parent process."""


class BatchScheduler(PolicyScheduler):
    """Its base class with compiled kernels, in a process that ends with its parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)
        warm_up(self)


class AsyncBatchScheduler(AsyncPolicyScheduler):
    """Its base class with compiled kernels, in a process that ends with its parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)
        warm_up(self)


def warm_up(scheduler: Any) -> None:
    """Compile the policy's kernels with a few short requests in the step engine."""
    options = SchedulerOptions.of(scheduler_options(scheduler.vllm_config))
    policy = options.make_policy()
    count = 4
    ones = np.ones(count, dtype=np.int64)
    table = RequestTable.of_arrays(ones, 2 * ones, np.zeros(count))
    rules = replace(scheduler.rules, max_num_seqs=2)  # so that requests wait
    # A policy that fails here fails in the engine too, where it is reported.
    with suppress(Exception):
        drive(StepEngine(table, rules, policy))


def end_with_parent() -> None:
    """End this process soon after its parent, if it has one."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(LOOK_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
