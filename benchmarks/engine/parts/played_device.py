"""vLLM's engine core without a model: only the device is simulated.

Each step keeps the device busy for a given time, and each request in it whose prompt is
computed gets a fixed token. All else is vLLM's own.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = 77
"""The token that every request gets; it ends no answer."""

SPIN_S = 0.0005
"""Seconds before the end of a step from which the wait for it polls."""


class Device:
    """Replaces an executor: runs steps one after the other, each in the same time.

    Its times are computed, not kept by a thread, which would have to wait for the
    interpreter to notice that a step is over.

    Parameters
    ----------
    scheduler : Scheduler
        vLLM's own, or one that derives from it.
    step_s : float
        Seconds that each step takes.
    run_async : bool
        Whether the engine core schedules a step while the one before it runs.

    Attributes
    ----------
    idle_s : list of float
        Idle time before each step but the first.
    supported_tasks : tuple of str
        Tasks of the executor that it replaces; read with each request.
    """

    supported_tasks: tuple[str, ...] = ()

    def __init__(self, scheduler: Any, step_s: float, *, run_async: bool) -> None:
        self._scheduler = scheduler
        self._step_s = step_s
        self._async = run_async
        self._launched: Any = None
        self._free_at = 0.0
        self.idle_s: list[float] = []

    def execute_model(self, output: Any, non_block: bool = False) -> Any:
        """Launch a step; one without tokens is over at once."""
        if not output.total_num_scheduled_tokens:
            return _Step(0.0, _one_token_each(output, self._scheduler))
        if not self._async:
            return self._launch(output)
        self._launched = output
        return _Step(0.0, None)

    def sample_tokens(self, grammar: Any, non_block: bool = False) -> Any:
        """Launch the step that is waiting for it, under async scheduling."""
        return self._launch(self._launched)

    def _launch(self, output: Any) -> _Step:
        now = time.perf_counter()
        if self._free_at:
            self.idle_s.append(max(0.0, now - self._free_at))
        self._free_at = max(now, self._free_at) + self._step_s
        return _Step(self._free_at, _one_token_each(output, self._scheduler))


@dataclass
class _Step:
    """A step's result, for which the engine waits."""

    over_at: float
    outcome: Any

    def result(self) -> Any:
        """Wait until the step is over."""
        rest = self.over_at - time.perf_counter()
        if rest > SPIN_S:
            time.sleep(rest - SPIN_S)
        while time.perf_counter() < self.over_at:
            pass
        return self.outcome


def _one_token_each(output: Any, scheduler: Any) -> Any:
    """Output of a model that makes a token for each request with its whole prompt."""
    from vllm.v1.outputs import ModelRunnerOutput

    names = list(output.num_scheduled_tokens)
    requests = scheduler.requests
    tokens = [[] if requests[name].is_prefill_chunk else [TOKEN] for name in names]
    index = {name: k for k, name in enumerate(names)}
    return ModelRunnerOutput(names, index, tokens)


@contextmanager
def played(core: Any, step_s: float, *, run_async: bool) -> Iterator[Device]:
    """Replace an engine core's executor by a device.

    With `run_async` the core works as it does on a GPU, with two steps under way; vLLM
    switches that off on a CPU.
    """
    device = Device(core.scheduler, step_s, run_async=run_async)
    executor, core.model_executor = core.model_executor, device
    device.supported_tasks = executor.supported_tasks
    if run_async:
        core.batch_queue, core.batch_queue_size = deque(maxlen=2), 2
        core.step_fn = core.step_with_batch_queue
    try:
        yield device
    finally:
        core.model_executor = executor


def step(core: Any) -> list[Any]:
    """Run one step of an engine core; return its outputs, one per request."""
    outputs, executed = core.step_fn()
    core.post_step(executed)
    clients = (outputs or {}).values()
    return [output for client in clients for output in client.outputs]
