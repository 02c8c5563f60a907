"""How long a device waits for the scheduler: vLLM's engine core, without a model.

The real engine core runs, with vLLM's own scheduler or ours, one step after the other,
with and without async scheduling. Only the device is simulated: each step keeps it busy
for the duration of a real model's step, and each request in it gets a token. Measured
is the time for which the device is idle between two steps.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.registry import Spec, markdown_table
from benchmarks.engine.parts.played_device import played, step
from benchmarks.engine.scheduler_cost import (
    LOADS,
    POLICIES,
    REAL_STEP_S,
    WARM_UP,
    Stream,
    choose,
)
from online.executor.vllm_engine import VllmSettings, start_engine
from online.policy import make_policy
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from benchmarks.common.registry import Row, Settings


def measure(
    policy: str | None, waiting: int, load: str, steps: int, *, run_async: bool
) -> Row:
    """Run the engine core beside a device, with ours and a policy, or plain (None)."""
    chosen = LOADS[load]
    engine = VllmSettings(
        EngineModel.vllm(
            chosen.kv_budget, block_size=32, max_num_seqs=128, max_batched_tokens=8192
        ),
        max_model_len=1024,
    )
    choose(policy)
    llm, vllm = start_engine(engine, ours=policy is not None, run_async=run_async)
    core = llm.engine_core.engine_core
    scheduler = core.scheduler
    if policy is not None:
        scheduler.attach(scheduler.host.table, make_policy(policy))
    # At most all running requests complete in a step, and on average far fewer.
    ready = _prepared(
        core, Stream(llm, vllm, chosen), waiting + 100 + 16 * (steps + WARM_UP)
    )
    for _ in range(waiting + 100):
        core.add_request(ready.popleft())
    running = []
    with played(core, REAL_STEP_S, run_async=run_async) as device:
        while len(device.idle_s) < steps + WARM_UP:
            done = sum(output.finished for output in step(core))
            running.append(len(scheduler.running))
            for _ in range(min(done, len(ready))):
                core.add_request(ready.popleft())
    idle = 1e6 * np.array(device.idle_s[WARM_UP : WARM_UP + steps])
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


def _prepared(core: Any, stream: Stream, count: int) -> deque[Any]:
    """Make requests in advance, as an engine's front end does in its own process."""
    ready: deque[Any] = deque()
    own_add = core.add_request
    core.add_request = lambda request, _: ready.append(request)
    stream.send(count)
    core.add_request = own_add
    return ready


def run(settings: Settings) -> list[Row]:
    """Measure plain vLLM and some policies, in turns."""
    rows = []
    for repeat in range(settings.pick(2, 1)):
        for waiting in (1000, 10_000)[: settings.pick(2, 1)]:
            for load in list(LOADS)[: settings.pick(2, 1)]:
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
        f"{1000 * REAL_STEP_S:.0f} ms for a step is idle before the next one: mean, "
        "P50 and P99, medians of the repeats. The last column is how much longer a "
        "step takes than with vLLM's own scheduler. One by one, the device waits for "
        "all of the scheduler's work; with async scheduling, which vLLM uses on a GPU "
        "by default, the next step is scheduled while it is busy. The load is the "
        "answers' lengths in tokens. Only the device is simulated: vLLM's engine core "
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


SPEC = Spec("Time that a device waits for the scheduler", run, page, needs=("vllm",))
