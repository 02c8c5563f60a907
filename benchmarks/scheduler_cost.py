"""What the scheduler class costs per step inside vLLM, beside vLLM's own scheduler.

About a hundred requests run while thousands wait. Times are those of the scheduler's
two calls of a step, `schedule` and `update_from_output`; what ours adds is its own part
of them, without vLLM's code that it calls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.registry import Spec, add, markdown_table
from online.executor.prompts import random_prompt
from online.executor.vllm_engine import VllmSettings, start_engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.registry import Row, Settings

REAL_STEP_S = 0.025
"""Seconds that a step of a real model takes."""

ENGINE = VllmSettings(
    9600, max_num_seqs=128, max_batched_tokens=8192, max_model_len=1024
)
CALLS = ("schedule", "update_from_output")


@dataclass
class Watch:
    """Collects the seconds of each step's calls, and of vLLM's part of them."""

    outer_s: list[float] = field(default_factory=list)
    inner_s: list[float] = field(default_factory=list)

    def timed(self, call: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
        """Wrap a call so that its seconds are added to the last entry of `into`."""

        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = call(*args, **kwargs)
            into[-1] += time.perf_counter() - began
            return result

        return run


def measure(policy: str | None, waiting: int, steps: int) -> Row:
    """Run an engine with our scheduler and a policy, or plain (None)."""
    llm, vllm = start_engine(ENGINE, ours=policy is not None)
    scheduler = llm.engine_core.engine_core.scheduler
    if policy is not None:
        from online.policy import make_policy

        scheduler.attach(scheduler.table, make_policy(policy))
    draw = np.random.default_rng(0)
    for i in range(waiting + 100):
        answer, prompt = int(draw.integers(20, 80)), int(draw.integers(5, 60))
        params = vllm.SamplingParams(
            max_tokens=answer,
            ignore_eos=True,
            detokenize=False,
            extra_args={"predicted_tokens": answer},
        )
        tokens = {"prompt_token_ids": random_prompt(i, prompt)}
        llm.add_request(str(i), tokens, params)
    watch = Watch()
    _wrap(scheduler, watch, ours=policy is not None)
    running = []
    for _ in range(steps + 10):
        watch.outer_s.append(0.0)
        watch.inner_s.append(0.0)
        llm.step()
        running.append(len(scheduler.running))
    llm.engine_core.shutdown()
    outer, inner = np.array(watch.outer_s[10:]), np.array(watch.inner_s[10:])
    return {
        "scheduler": "vLLM's own" if policy is None else policy,
        "waiting": waiting,
        "running": float(np.mean(running[10:])),
        "steps": steps,
        "mean_us": 1e6 * float(outer.mean()),
        "median_us": 1e6 * float(np.median(outer)),
        "added_mean_us": None
        if policy is None
        else 1e6 * float((outer - inner).mean()),
        "added_median_us": (
            None if policy is None else 1e6 * float(np.median(outer - inner))
        ),
    }


def _wrap(scheduler: Any, watch: Watch, *, ours: bool) -> None:
    """Time the calls from outside, and vLLM's own from inside ours."""
    from vllm.v1.core.sched.scheduler import Scheduler

    for name in CALLS:
        setattr(scheduler, name, watch.timed(getattr(scheduler, name), watch.outer_s))
    if not ours:
        return
    # The class after ours in the order of resolution is vLLM's; a class between them
    # takes the time, for this one object.
    inner = {
        name: watch.timed(getattr(Scheduler, name), watch.inner_s) for name in CALLS
    }
    bases = type(scheduler).__mro__
    timed = type("Timed", (Scheduler,), inner)
    scheduler.__class__ = type("Ours", (bases[1], timed), {})


def run(settings: Settings) -> list[Row]:
    """Measure plain vLLM and two policies, in turns."""
    rows = []
    for waiting in (1000, 10_000)[: settings.pick(2, 1)]:
        for repeat in range(settings.pick(3, 1)):
            for policy in (None, "fcfs", "svf"):
                row = measure(policy, waiting, settings.pick(250, 20))
                rows.append({**row, "repeat": repeat})
    return rows


def page(rows: list[Row]) -> str:
    """Lay out medians over the repeats."""
    lines = []
    for waiting in dict.fromkeys(row["waiting"] for row in rows):
        own = [row for row in rows if row["waiting"] == waiting]
        plain = median(r["median_us"] for r in own if r["added_mean_us"] is None)
        for name in dict.fromkeys(row["scheduler"] for row in own):
            mine = [row for row in own if row["scheduler"] == name]
            each = median(r["median_us"] for r in mine)
            added = [r["added_median_us"] for r in mine if r["added_median_us"]]
            share = median(added) / 1e6 / REAL_STEP_S if added else None
            lines.append(
                [
                    name,
                    f"{waiting:,}",
                    f"{median(r['running'] for r in mine):.0f}",
                    f"{each:.0f}",
                    f"{each / plain:.2f}",
                    f"{median(added):.0f}" if added else "-",
                    "-" if share is None else f"{share:.2%}",
                ]
            )
    intro = (
        "Medians per step, in microseconds. The last column is what ours adds as part "
        f"of a real model's step of {1000 * REAL_STEP_S:.0f} ms."
    )
    columns = [
        "scheduler", "waiting", "running", "per step", "of vLLM's own", "added by us",
        "of a real step",
    ]  # fmt: skip
    return f"{intro}\n\n{markdown_table(columns, lines)}"


add("scheduler_cost", Spec("Cost of the scheduler class in vLLM", run, page))
