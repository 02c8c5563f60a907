"""Streams of prompts that share prefixes: policies beside vLLM's order, with its cache.

Mooncake traces are replayed; conversations are drawn, and a turn of them arrives only
after the turn before it has completed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.online_runs import STEP_TIME, as_row
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from online.named import Named, parse_named
from online.sweep import Run, Setting, execute
from sortedf import EngineModel, generate
from sortedf.traces import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from sortedf.traces import Trace

LOADS = (0.7, 1.0, 1.3, 2.0, 4.0)
POLICIES = ("fcfs", "longest-prefix", "svf-blind", "svf-aged", "svf-boost")
FIGURES = ("mean TTFT", "P99 TTFT", "mean TTLT", "P99 TTLT")

MOONCAKE = {
    "Mooncake conversation": "traces/mooncake_conversation.jsonl",
    "Mooncake tool agent": "traces/mooncake_toolagent.jsonl",
    "Mooncake synthetic": "formats/mooncake_synthetic_head.jsonl",
}
"""Traces as published, with `hash_ids`; those that the data folder has are used."""

CHAT_BUDGET, MOONCAKE_BUDGET = 16_384, 262_144
"""Tokens of KV."""


def run(settings: Settings) -> list[Row]:
    """Simulate every policy at every load, with prefix caching."""
    journal = Journal("prefix_streams", settings)
    loads = LOADS[1:2] if settings.quick else LOADS
    policies = POLICIES[: settings.pick(len(POLICIES), 2)]
    rows = []
    for name, trace, kind, budget in _streams(settings):
        rules = EngineModel.vllm(budget, 16, 256, 2048, prefix_caching=True)
        setting = Setting(
            trace, rules, step_time=STEP_TIME, arrivals=Named(kind), drop_oversize=True
        )
        for load in loads:
            for policy in policies:
                one = Run(parse_named(policy), load, seed=1)
                make_row = partial(_measured, setting, one, name)
                rows.append(journal.row(f"{name}, {load:g}, {policy}", make_row))
    return rows


def _streams(settings: Settings) -> list[tuple[str, Trace, str, int]]:
    """Name, requests, kind of arrivals and KV budget of each stream."""
    n = settings.pick(1000, 30)
    drawn = generate("conversations", n, seed=1, think_s=10)
    streams = [("conversations", drawn, "sessions", CHAT_BUDGET)]
    for name, file in MOONCAKE.items():
        path: Path = settings.data / file
        if path.is_file():
            whole = read_trace(path)
            first = whole.subset(np.arange(min(n, whole.num_requests)))
            streams.append((name, first, "trace", MOONCAKE_BUDGET))
    return streams


def _measured(setting: Setting, run: Run, stream: str) -> Row:
    return as_row(execute(setting, run), stream=stream)


def figures_of(row: Row) -> list[float]:
    """Look up the `FIGURES` of a row."""
    return [row[what][which] for what in ("ttft", "ttlt") for which in ("mean", "p99")]


def page(rows: list[Row]) -> str:
    """One line for each run, divided by FCFS of the same load."""
    fcfs = {
        (row["stream"], row["load"]): figures_of(row)
        for row in rows
        if row["policy"] == "fcfs"
    }
    lines = []
    for row in rows:
        where = row["stream"], row["load"]
        own = figures_of(row)
        if row["policy"] == "fcfs":
            cells = [f"{value:.3g} s" for value in own]
        else:
            cells = [f"{a / b:.2f}" for a, b in zip(own, fcfs[where], strict=True)]
        cells.append(f"{row['hit_rate']:.0%}")
        lines.append([where[0], f"{where[1]:g}", row["policy"], *cells])
    return (
        "vLLM's rules with prefix caching, step times of an A100. A load counts all "
        "tokens of prompts, so that where much of them is cached the engine is less "
        "busy than that. Seconds for `fcfs`, which is vLLM's order; the others are "
        "divided by it, less is better.\n\n"
        + markdown_table(["stream", "load", "policy", *FIGURES, "hit rate"], lines)
    )


SPEC = Spec("Streams of prompts that share prefixes", run, page, needs=("data",))
