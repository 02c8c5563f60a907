"""Requests that the simulator serves in a minute, and a profile of its time.

Beside it on the same trace, if installed: Vidur (github.com/microsoft/vidur), the
public simulator of the field. The environment variable SORTEDF_VIDUR names a Python
interpreter that can import it; see `benchmarks.online.parts.vidur_side` for its input.
"""

from __future__ import annotations

import cProfile
import csv
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.common.online_runs import STEP_TIME, vllm_rules
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from online.arrivals import arrive
from online.simulator import simulate
from sortedf.generator import generate
from sortedf.load import rate_of_load

if TYPE_CHECKING:
    from sortedf.traces import Trace

KV_BUDGET = 36_864
"""Tokens; about 100 chats run at once."""

RUNS = 3
LIMITS = {
    "fcfs": 100_000, "svf": None, "sorted-f-online": 20_000, "svf-boost": None,
    "svf-blind": None, "srpt": None, "uniboost": None,
}  # fmt: skip
"""Targets in requests a minute, by policy."""

VIDUR_SIDE = Path(__file__).with_name("parts") / "vidur_side.py"
VIDUR_REQUESTS = 2000

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
    interpreter = os.environ.get("SORTEDF_VIDUR")
    if interpreter is None:
        print("   no comparison: SORTEDF_VIDUR is not set", file=sys.stderr)
    else:
        rows += _beside_vidur(interpreter, _chats(settings.pick(VIDUR_REQUESTS, 60)))
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


def _beside_vidur(interpreter: str, trace: Trace) -> list[Row]:
    """Run Vidur and our own simulator on a trace, one after the other."""
    rules = vllm_rules(KV_BUDGET)
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "trace": str(_vidur_trace(trace, Path(folder))),
            "step_time": asdict(STEP_TIME),
            "block_size": rules.block_size,
            "num_blocks": rules.num_blocks,
            "max_num_seqs": rules.max_num_seqs,
            "max_batched_tokens": rules.max_batched_tokens,
            "max_tokens": int((trace.prefill + trace.decode).max()),
        }
        (Path(folder) / "job.json").write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run(
            [interpreter, str(VIDUR_SIDE), "job.json"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{interpreter} could not run Vidur: {done.stderr[-400:]}")
    vidur = json.loads(done.stdout.splitlines()[-1])
    simulate(trace, "fcfs", rules, step_time=STEP_TIME)  # compiles
    began = time.perf_counter()
    log = simulate(trace, "fcfs", rules, step_time=STEP_TIME)
    ours = {
        "seconds": time.perf_counter() - began,
        "completed": int(log.completed.sum()),
        "mean_latency": float((log.completion_s - log.arrival_s).mean()),
        "restarts": int(log.steps.preemptions.sum()),
    }
    return [
        {"kind": "beside", "simulator": "this one", **ours},
        {"kind": "beside", "simulator": "Vidur", **vidur},
    ]


def _vidur_trace(trace: Trace, folder: Path) -> Path:
    path = folder / "trace.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["arrived_at", "num_prefill_tokens", "num_decode_tokens"])
        columns = (trace.arrival_s, trace.prefill, trace.decode)
        lines.writerows(zip(*(c.tolist() for c in columns), strict=True))
    return path


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
            *_beside([row for row in rows if row["kind"] == "beside"]),
        ]
    )


def _beside(rows: list[Row]) -> list[str]:
    """Compare with Vidur, or state how to."""
    if not rows:
        return [
            "Not beside Vidur: name a Python interpreter that can import it by "
            "SORTEDF_VIDUR."
        ]
    ours, vidur = rows
    table = [
        [
            row["simulator"],
            f"{60 * row['completed'] / row['seconds']:,.0f}",
            f"{row['mean_latency']:.2f}",
            f"{row['restarts']:,}",
        ]
        for row in rows
    ]
    columns = ["simulator", "requests/minute", "mean TTLT (s)", "preemptions"]
    faster = vidur["seconds"] / ours["seconds"]
    apart = vidur["mean_latency"] / ours["mean_latency"] - 1
    return [
        f"Beside Vidur on {ours['completed']:,} of these chats, one after the other, "
        "`fcfs` here and its scheduler with prefills in chunks there, with the same "
        "limits and, in the place of its learned predictor, the same formula for the "
        "duration of a step, which spares Vidur the work of predicting. Only the run "
        "itself is timed there; here the log and its check are in it. This simulator "
        f"is {faster:.1f} times faster. Vidur's mean latency differs by {apart:+.1%}: "
        "both have vLLM's rules, but not to the letter the same ones.",
        markdown_table(columns, table),
    ]


SPEC = Spec("Speed of the simulator", run, page)
