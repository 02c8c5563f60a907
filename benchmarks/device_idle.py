"""How long a device waits for the scheduler: vLLM's engine core, without a model.

The real engine core runs, with vLLM's own scheduler or ours, one step after the other,
with and without async scheduling. Only the device is played: each step keeps it busy
for the time that one of a real model takes, and each request in it gets a token. What
counts is for how long the device has nothing to do between two steps.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.registry import Spec, add, markdown_table
from benchmarks.scheduler_cost import LOADS, POLICIES, REAL_STEP_S, WARM_UP, Stream
from online.executor.vllm_engine import VllmSettings, start_engine
from online.policy import make_policy

if TYPE_CHECKING:
    from benchmarks.registry import Row, Settings

SPIN_S = 0.0005
"""How long before a step is over the wait for it stops sleeping."""


class Device:
    """Stands for an executor: runs steps one after the other, each in the same time.

    Its times are reckoned and not kept by a thread, which would have to wait for the
    interpreter to notice that a step is over.
    """

    def __init__(self, scheduler: Any, *, run_async: bool) -> None:
        self._scheduler = scheduler
        self._async = run_async
        self._launched: Any = None
        self._free_at = 0.0
        self.idle_s: list[float] = []

    def execute_model(self, output: Any, non_block: bool = False) -> Any:
        """Launch a step."""
        if not self._async:
            return self._launch(output)
        self._launched = output
        done: Future[Any] = Future()
        done.set_result(None)
        return done

    def sample_tokens(self, grammar: Any, non_block: bool = False) -> Any:
        """Launch the step that is waiting for it, under async scheduling."""
        return self._launch(self._launched)

    def _launch(self, output: Any) -> _Step:
        now = time.perf_counter()
        if self._free_at:
            self.idle_s.append(max(0.0, now - self._free_at))
        self._free_at = max(now, self._free_at) + REAL_STEP_S
        return _Step(self._free_at, _one_token_each(output, self._scheduler))


@dataclass
class _Step:
    """What the engine waits for."""

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
    tokens = [[] if requests[name].is_prefill_chunk else [7] for name in names]
    places = {name: place for place, name in enumerate(names)}
    return ModelRunnerOutput(names, places, tokens)


@dataclass
class Core:
    """The engine core with a stream of requests that are ready to be added."""

    core: Any
    ready: deque[Any] = field(default_factory=deque)

    def prepare(self, stream: Stream, count: int) -> None:
        """Make requests, as the engine's front end does beside it."""
        own_add = self.core.add_request
        self.core.add_request = lambda request, wave: self.ready.append(request)
        stream.send(count)
        self.core.add_request = own_add

    def add(self, count: int) -> None:
        """Let some come."""
        for _ in range(count):
            self.core.add_request(self.ready.popleft())

    def step(self) -> int:
        """Run one step of the core; return how many are done by it."""
        outputs, executed = self.core.step_fn()
        self.core.post_step(executed)
        return sum(
            output.finished
            for client in (outputs or {}).values()
            for output in client.outputs
        )


def measure(
    policy: str | None, waiting: int, load: str, steps: int, *, run_async: bool
) -> Row:
    """Run the engine core beside a device, with ours and a policy, or plain (None)."""
    chosen = LOADS[load]
    engine = VllmSettings(
        chosen.kv_budget, max_num_seqs=128, max_batched_tokens=8192, max_model_len=1024
    )
    llm, vllm = start_engine(engine, ours=policy is not None, run_async=run_async)
    core = llm.engine_core.engine_core
    scheduler = core.scheduler
    if policy is not None:
        scheduler.attach(scheduler.table, make_policy(policy))
    driven = Core(core)
    # In each step at most all that run are done, and on average far fewer.
    driven.prepare(Stream(llm, vllm, chosen), waiting + 100 + 16 * (steps + WARM_UP))
    driven.add(waiting + 100)
    device = Device(scheduler, run_async=run_async)
    executor, core.model_executor = core.model_executor, device
    if run_async:
        core.batch_queue, core.batch_queue_size = deque(maxlen=2), 2
        core.step_fn = core.step_with_batch_queue
    running = []
    while len(device.idle_s) < steps + WARM_UP:
        done = driven.step()
        running.append(len(scheduler.running))
        driven.add(min(done, len(driven.ready)))
    idle = 1e6 * np.array(device.idle_s[WARM_UP : WARM_UP + steps])
    core.model_executor = executor
    llm.engine_core.shutdown()
    median_us, p99_us = np.percentile(idle, [50, 99]).tolist()
    return {
        "scheduler": "vLLM's own" if policy is None else policy,
        "async": run_async,
        "load": load,
        "waiting": waiting,
        "running": float(np.mean(running[WARM_UP:])),
        "steps": steps,
        "idle_mean_us": float(idle.mean()),
        "idle_median_us": median_us,
        "idle_p99_us": p99_us,
    }


def run(settings: Settings) -> list[Row]:
    """Measure plain vLLM and some policies, in turns."""
    rows = []
    for repeat in range(settings.pick(3, 1)):
        for waiting in (1000, 10_000)[: settings.pick(2, 1)]:
            for load in LOADS:
                for run_async in (False, True):
                    for policy in POLICIES[: settings.pick(6, 2)]:
                        steps = settings.pick(200, 10)
                        row = measure(policy, waiting, load, steps, run_async=run_async)
                        rows.append({**row, "repeat": repeat})
    return rows


def page(rows: list[Row]) -> str:
    """Lay out medians over the repeats."""
    lines = []
    cases = dict.fromkeys((row["async"], row["waiting"], row["load"]) for row in rows)
    for case in sorted(cases):
        here = [r for r in rows if (r["async"], r["waiting"], r["load"]) == case]
        plain = _middle(here, "vLLM's own", "idle_mean_us")
        for name in dict.fromkeys(row["scheduler"] for row in here):
            idle = [
                _middle(here, name, f"idle_{figure}_us")
                for figure in ("mean", "median", "p99")
            ]
            lost = (idle[0] - plain) / 1e6 / REAL_STEP_S
            lines.append([
                name, "async" if case[0] else "one by one", f"{case[1]:,}", case[2],
                f"{_middle(here, name, 'running'):.0f}",
                *(f"{figure:.0f}" for figure in idle),
                "-" if name == "vLLM's own" else f"{lost:+.2%}",
            ])  # fmt: skip
    intro = (
        "Microseconds for which a device that needs "
        f"{1000 * REAL_STEP_S:.0f} ms for a step has nothing to do before the next one "
        "comes: mean, P50 and P99, medians of the repeats. The last column is how much "
        "longer a step takes than with vLLM's own scheduler. One by one, the device "
        "waits for all that the scheduler does; with async scheduling, which vLLM uses "
        "on a GPU by default, the next step is scheduled while it is busy. The load is "
        "the answers' lengths in tokens. Nothing else is played: vLLM's engine core "
        "adds, schedules and ends the requests."
    )
    columns = [
        "scheduler", "steps are scheduled", "waiting", "load", "running", "idle", "P50",
        "P99", "longer than vLLM's own",
    ]  # fmt: skip
    return f"{intro}\n\n{markdown_table(columns, lines)}"


def _middle(rows: list[Row], name: str, figure: str) -> float:
    """Median of a scheduler's figure over the repeats."""
    return float(median(row[figure] for row in rows if row["scheduler"] == name))


add("device_idle", Spec("Time that a device waits for the scheduler", run, page))
