"""Scheduler classes for the engine's own process.

The process must not outlive a run: vLLM starts the engine as a child and stops it, but
a run that is killed cannot do so, and its engine would wait for requests forever and
keep its memory.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from typing import Any

from online.executor.vllm_scheduler import AsyncPolicyScheduler, PolicyScheduler

LOOK_EVERY_S = 0.5
"""Seconds between two checks of the parent process."""


class BatchScheduler(PolicyScheduler):
    """Its base class in a process that ends with its parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)


class AsyncBatchScheduler(AsyncPolicyScheduler):
    """Its base class in a process that ends with its parent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent()
        super().__init__(*args, **kwargs)


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
