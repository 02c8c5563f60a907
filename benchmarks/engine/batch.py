"""`vllm run-batch` and `sortedf run-batch` side by side, on one file."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.engine.parts.batch_runs import KV_BUDGET, Bench, texts

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD = "svf"
FIGURES = ("mean_completion_s", "makespan_s", "preemptions")


def run(settings: Settings) -> list[Row]:
    """Run both, in turns, on a new file for each pair; the answers must be the same."""
    journal = Journal("batch", settings)
    n = settings.pick(300, 20)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sortedf-batch-") as name:
        bench = Bench(Path(name))
        bench.prepare()
        for pair in range(settings.pick(5, 1)):
            both = journal.row(f"pair {pair}", partial(_pair, bench, pair, n))
            rows += [both["vllm"], both["sortedf"]]
    return rows


def _pair(bench: Bench, pair: int, n: int) -> Row:
    """Run both on one file."""
    batch = bench.folder / f"in-{pair}.jsonl"
    bench.write_batch(batch, n, seed=pair)
    sides: list[tuple[str, Callable[[Bench, Path], Row]]]
    sides = [("vllm", _stock), ("sortedf", _ours)]
    rows: dict[str, Row] = {}
    # Which runs first alternates: the machine may be warmer or busier then.
    for side, measure in sides if pair % 2 == 0 else sides[::-1]:
        row = {"pair": pair, "n": n, "kv_budget": KV_BUDGET, "command": side}
        rows[side] = row | measure(bench, batch)
    same = _same_answers(bench)
    return {side: row | {"same_answers": same} for side, row in rows.items()}


def _stock(bench: Bench, batch: Path) -> Row:
    times = bench.folder / "times.json"
    bench.run(bench.baseline(batch, bench.folder / "vllm.jsonl", times))
    seen = json.loads(times.read_text(encoding="utf-8"))
    return {
        "mean_completion_s": fmean(seen["done_s"]),
        "makespan_s": max(seen["done_s"]),
        "preemptions": seen["preemptions"],
    }


def _ours(bench: Bench, batch: Path) -> Row:
    out = bench.run(bench.ours(batch, bench.folder / "sortedf.jsonl", METHOD))
    seen = json.loads(out)
    return {"method": METHOD, **{name: seen[name] for name in FIGURES}}


def _same_answers(bench: Bench) -> int:
    """Count the requests for which both outputs have the same text."""
    theirs, ours = (texts(bench.folder / f"{s}.jsonl") for s in ("vllm", "sortedf"))
    if theirs.keys() != ours.keys():
        raise RuntimeError("the two outputs answer different requests.")
    return sum(theirs[custom_id] == ours[custom_id] for custom_id in theirs)


def page(rows: list[Row]) -> str:
    """Medians of both over the pairs, and of the ratio within a pair."""
    by_side = {s: [r for r in rows if r["command"] == s] for s in ("vllm", "sortedf")}
    medians = [
        [
            f"`{side} run-batch`",
            *(f"{median(row[name] for row in own):,.2f}" for name in FIGURES[:2]),
            f"{median(row['preemptions'] for row in own):,.0f}",
        ]
        for side, own in by_side.items()
    ]
    ratios = [f"{median(_ratios(by_side, name)):.2f}" for name in FIGURES[:2]]
    pairs, n = len(by_side["vllm"]), rows[0]["n"]
    same = sum(row["same_answers"] for row in by_side["vllm"])
    columns = ["", "mean completion, s", "makespan, s", "preemptions"]
    return "\n\n".join(
        [
            f"{n} requests of the 80/20 mix, scaled to a random Llama of two layers on "
            f"the CPU; KV budget {KV_BUDGET:,} tokens; {pairs} paired runs, in "
            "alternating order; medians. Seconds since all requests were sent. Ours "
            f"follows `{METHOD}` with `max_tokens` as answer lengths.",
            markdown_table(columns, [*medians, ["theirs / ours", *ratios, ""]]),
            f"The answers are the same for {same:,} of {pairs * n:,} requests.",
        ]
    )


def _ratios(by_side: dict[str, list[Row]], name: str) -> list[float]:
    """Return theirs over ours for each pair."""
    theirs, ours = ({row["pair"]: row[name] for row in own} for own in by_side.values())
    return [theirs[pair] / ours[pair] for pair in theirs]


SPEC = Spec(
    "Batch files: vLLM's own order and ours", run, page, needs=("vllm", "commands")
)
