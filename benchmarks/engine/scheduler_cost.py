"""Cost of the scheduler class per step inside vLLM, beside vLLM's own scheduler.

About a hundred requests run while thousands wait, and each that completes is followed
by a new one. Times are those of the scheduler's calls of a step, `schedule` and
`update_from_output`, and of `add_request` for new requests; ours adds its own part of
them, without vLLM's code that it calls. A step is quiet if the policy was not called,
since all that changed is that each running request made a token.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.registry import Spec, markdown_table
from online.executor.prompts import random_prompt
from online.executor.scheduler_options import VARIABLE
from online.executor.vllm_engine import VllmSettings, start_engine
from online.policy import make_policy
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.common.registry import Row, Settings
    from online.state import Decision, Policy, State

    Floats = NDArray[np.float64]

REAL_STEP_S = 0.025
"""Seconds of a real model's step."""

WARM_UP = 30
"""Steps at the start that are not counted."""

CALLS = ("schedule", "update_from_output", "add_request")


@dataclass(frozen=True, slots=True)
class Load:
    """Answer lengths, and a cache in which about a hundred of them fit.

    Attributes
    ----------
    shortest, longest : int
        Answers are uniform in between, in tokens.
    kv_budget : int
    """

    shortest: int
    longest: int
    kv_budget: int


LOADS = {"20 to 80": Load(20, 80, 9600), "100 to 500": Load(100, 500, 28_800)}
"""By answer length: a few requests complete in each step, or one in every few steps."""


@dataclass
class Watch:
    """Collects the seconds of each step's calls, and of vLLM's part of them."""

    outer_s: list[float] = field(default_factory=list)
    inner_s: list[float] = field(default_factory=list)

    def next_step(self) -> None:
        """Begin a step."""
        self.outer_s.append(0.0)
        self.inner_s.append(0.0)

    def timed(self, call: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
        """Wrap a call so that its seconds are added to the last entry of `into`."""

        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = call(*args, **kwargs)
            into[-1] += time.perf_counter() - began
            return result

        return run


class Asked:
    """Passes a policy's decisions on, and counts them."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.times = 0

    def decide(self, state: State) -> Decision:
        """Return the policy's decision."""
        self.times += 1
        return self.policy.decide(state)


class Stream:
    """Requests of random lengths, one after the other; hints are right."""

    def __init__(self, llm: Any, vllm: Any, load: Load) -> None:
        self._llm, self._vllm, self._load = llm, vllm, load
        self._draw = np.random.default_rng(0)
        self._count = 0

    def send(self, count: int) -> None:
        """Send some more requests."""
        for i in range(self._count, self._count + count):
            answer = int(self._draw.integers(self._load.shortest, self._load.longest))
            params = self._vllm.SamplingParams(
                max_tokens=answer,
                ignore_eos=True,
                detokenize=False,
                extra_args={"predicted_tokens": answer},
            )
            tokens = random_prompt(i, int(self._draw.integers(5, 60)))
            self._llm.add_request(str(i), {"prompt_token_ids": tokens}, params)
        self._count += count


def choose(policy: str | None) -> None:
    """Let engines that are started from now on load a policy's kernels at once."""
    os.environ[VARIABLE] = json.dumps({} if policy is None else {"policy": policy})


def measure(policy: str | None, waiting: int, load: str, steps: int) -> Row:
    """Run an engine with our scheduler and a policy, or plain (None)."""
    chosen = LOADS[load]
    engine = VllmSettings(
        EngineModel.vllm(
            chosen.kv_budget, block_size=32, max_num_seqs=128, max_batched_tokens=8192
        ),
        max_model_len=1024,
    )
    choose(policy)
    llm, vllm = start_engine(engine, ours=policy is not None)
    scheduler = llm.engine_core.engine_core.scheduler
    asked = None
    if policy is not None:
        asked = Asked(make_policy(policy))
        scheduler.attach(scheduler.host.table, asked)
    watch = Watch()
    watch.next_step()
    _wrap(scheduler, watch, ours=policy is not None)
    stream = Stream(llm, vllm, chosen)
    stream.send(waiting + 100)
    running, times = [], [0]
    for _ in range(steps + WARM_UP):
        done = sum(output.finished for output in llm.step())
        running.append(len(scheduler.running))
        times.append(0 if asked is None else asked.times)
        watch.next_step()
        stream.send(done)
    llm.engine_core.shutdown()
    outer = 1e6 * np.array(watch.outer_s[WARM_UP:-1])
    row: Row = {
        "scheduler": "vLLM's own" if policy is None else policy,
        "load": load,
        "waiting": waiting,
        "running": float(np.mean(running[WARM_UP:])),
        "steps": steps,
        **_figures("", outer),
    }
    if policy is not None:
        added = outer - 1e6 * np.array(watch.inner_s[WARM_UP:-1])
        quiet = np.diff(times)[WARM_UP:] == 0
        row |= {"quiet_share": float(quiet.mean()), **_figures("added_", added)}
        row |= _figures("added_quiet_", added[quiet])
        row |= _figures("added_other_", added[~quiet])
    return row


def _figures(of: str, times: Floats) -> Row:
    """Mean and quantiles, in microseconds; None of nothing."""
    if not len(times):
        return dict.fromkeys((f"{of}mean_us", f"{of}median_us", f"{of}p99_us"))
    median_us, p99_us = np.percentile(times, [50, 99]).tolist()
    return {
        f"{of}mean_us": float(times.mean()),
        f"{of}median_us": median_us,
        f"{of}p99_us": p99_us,
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


POLICIES = (None, "fcfs", "svf", "pars", "sorted-f-online", "srpt")


def run(settings: Settings) -> list[Row]:
    """Measure plain vLLM and some policies, in turns."""
    rows = []
    for waiting in (1000, 10_000)[: settings.pick(2, 1)]:
        for load in list(LOADS)[: settings.pick(2, 1)]:
            for repeat in range(settings.pick(3, 1)):
                for policy in POLICIES[: settings.pick(6, 3)]:
                    row = measure(policy, waiting, load, settings.pick(400, 20))
                    rows.append({**row, "repeat": repeat})
    return rows


def page(rows: list[Row]) -> str:
    """Lay out medians over the repeats."""
    lines = []
    for waiting, load in dict.fromkeys((row["waiting"], row["load"]) for row in rows):
        own = [r for r in rows if (r["waiting"], r["load"]) == (waiting, load)]
        plain = _middle([r for r in own if "quiet_share" not in r], "mean_us")
        for name in dict.fromkeys(row["scheduler"] for row in own):
            mine = [row for row in own if row["scheduler"] == name]
            each = _middle(mine, "mean_us")
            cells = [name, f"{waiting:,}", load]
            cells.append(f"{median(r['running'] for r in mine):.0f}")
            cells += [f"{each:.0f}", f"{each / plain:.2f}", _same_steps(mine)]
            lines.append(cells + _added(mine))
    intro = (
        "Microseconds per step, medians of the repeats. Policies that start short "
        "answers first start and finish more requests in a step, which is work for "
        "vLLM's code as well; so a step's cost stands beside that of vLLM's own "
        "scheduler in its run, and beside what vLLM's code took in the very same "
        "steps. What ours adds is shown over "
        "all steps (mean, P50, P99), over the quiet ones and over the others; the last "
        "column is the mean as part of a real model's step of "
        f"{1000 * REAL_STEP_S:.0f} ms. The load is the answers' lengths in tokens."
    )
    columns = [
        "scheduler", "waiting", "load", "running", "per step", "of vLLM's own",
        "of vLLM's in these steps", "added", "P50", "P99", "quiet steps",
        "added there", "P99 there", "added in others", "P99 in others",
        "of a real step",
    ]  # fmt: skip
    return f"{intro}\n\n{markdown_table(columns, lines)}"


def _same_steps(rows: list[Row]) -> str:
    """Cost of steps over that of vLLM's part in them."""
    if "quiet_share" not in rows[0]:
        return "1.00"
    whole = [row["mean_us"] / (row["mean_us"] - row["added_mean_us"]) for row in rows]
    return f"{median(whole):.2f}"


def _added(rows: list[Row]) -> list[str]:
    """Table cells for the time that ours adds."""
    if "quiet_share" not in rows[0]:
        return ["-"] * 9
    wanted = [
        "added_mean_us", "added_median_us", "added_p99_us", "added_quiet_mean_us",
        "added_quiet_p99_us", "added_other_mean_us", "added_other_p99_us",
    ]  # fmt: skip
    cells = [_cell(_middle(rows, figure)) for figure in wanted]
    cells.insert(3, f"{median(row['quiet_share'] for row in rows):.0%}")
    share = _middle(rows, "added_mean_us") / 1e6 / REAL_STEP_S
    return [*cells, f"{share:.2%}"]


def _middle(rows: list[Row], figure: str) -> Any:
    """Median of a figure over the rows that have it, or None."""
    known = [row[figure] for row in rows if row[figure] is not None]
    return median(known) if known else None


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


SPEC = Spec("Cost of the scheduler class in vLLM", run, page, needs=("vllm",))
