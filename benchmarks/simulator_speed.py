"""Requests that the simulator gets through in a minute, and where its time goes.

Vidur, the public simulator of the field, is on PyPI (0.0.26) and installs, with 1.3 GB
of dependencies, but its wheel has none of the profiling data that it needs to tell how
long a step takes, so that it cannot be run from there; there is no comparison here.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.online_settings import STEP_TIME, vllm_rules
from benchmarks.registry import Row, Settings, Spec, add, markdown_table
from online.arrivals import arrive
from online.load import rate_of_load
from online.simulator import simulate
from sortedf.generator import generate

if TYPE_CHECKING:
    from sortedf.traces import Trace

KV_BUDGET = 36_864
"""Tokens; about 100 chats run at once."""

RUNS = 3
LIMITS = {"fcfs": 100_000, "svf": None, "sorted-f-online": 20_000, "uniboost": None}
"""Requests a minute that we set ourselves, by policy."""

SHOWN = 8
"""Functions in the profile."""


def run(settings: Settings) -> list[Row]:
    """Time the whole call of `simulate`, checks included; then profile one run."""
    trace = _chats(settings.pick(8000, 60))
    rows = []
    for policy, limit in LIMITS.items():
        rows.append({"kind": "speed", "limit": limit, **_timed(policy, trace)})
    for policy in ("fcfs", "sorted-f-online"):
        rows += _profiled(policy, _chats(settings.pick(2000, 60)))
    return rows


def _chats(n: int) -> Trace:
    trace = generate("chat", n, seed=1)
    rate = rate_of_load(0.97, trace, vllm_rules(KV_BUDGET), STEP_TIME)
    return arrive(trace, "poisson", rate=rate, seed=1)


def _timed(policy: str, trace: Trace) -> Row:
    rules = vllm_rules(KV_BUDGET)
    seconds = []
    for _ in range(RUNS + 1):  # the first one compiles
        began = time.perf_counter()
        log = simulate(trace, policy, rules, step_time=STEP_TIME)
        seconds.append(time.perf_counter() - began)
    per_run = median(seconds[1:])
    return {
        "policy": policy,
        "requests": trace.num_requests,
        "steps": log.num_steps,
        "mean_running": float(log.steps.num_running.mean()),
        "mean_waiting": float(log.steps.num_waiting.mean()),
        "seconds": per_run,
        "all_s": seconds[1:],
        "requests_per_minute": 60 * trace.num_requests / per_run,
        "us_per_step": 1e6 * per_run / log.num_steps,
    }


def _profiled(policy: str, trace: Trace) -> list[Row]:
    profile = cProfile.Profile()
    profile.enable()
    simulate(trace, policy, vllm_rules(KV_BUDGET), step_time=STEP_TIME)
    profile.disable()
    stats = pstats.Stats(profile).get_stats_profile()
    total = stats.total_tt
    slowest = sorted(
        stats.func_profiles.items(), key=lambda item: item[1].tottime, reverse=True
    )
    return [
        {
            "kind": "profile",
            "policy": policy,
            "function": f"{Path(entry.file_name).name}: {name}",
            "share": entry.tottime / total,
        }
        for name, entry in slowest[:SHOWN]
    ]


def page(rows: list[Row]) -> str:
    """Speeds against our limits, and the profile."""
    speeds = [
        [
            row["policy"],
            f"{row['requests_per_minute']:,.0f}",
            "" if row["limit"] is None else f"{row['limit']:,}",
            f"{row['us_per_step']:.0f}",
            f"{row['mean_running']:.0f}",
            f"{row['mean_waiting']:.0f}",
        ]
        for row in rows
        if row["kind"] == "speed"
    ]
    profile = [
        [row["policy"], row["function"], f"{row['share']:.0%}"]
        for row in rows
        if row["kind"] == "profile"
    ]
    columns = ["policy", "requests/minute", "at least", "µs/step", "running", "waiting"]
    return "\n\n".join(
        [
            f"Generated chats with Poisson arrivals near capacity, M = {KV_BUDGET:,}, "
            "vLLM's rules (blocks of 16, 2,048 tokens a step, prefills in chunks), one "
            f"core of a shared machine; medians of {RUNS} runs after one that compiles "
            "the kernels. The whole call is timed, the log and its check included.",
            markdown_table(columns, speeds),
            "Where the time goes, by a profiler that itself slows calls down; own time "
            "of each function:",
            markdown_table(["policy", "function", "share"], profile),
            "Vidur 0.0.26 installs from PyPI, with 1.3 GB of dependencies, but without "
            "the profiling data that it needs, so that it could not be timed.",
        ]
    )


add("simulator_speed", Spec("Speed of the simulator", run, page))
