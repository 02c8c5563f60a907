"""Kills of `sortedf run-batch` at random moments, with a real engine."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from benchmarks.engine.parts.batch_runs import Bench
from sortedf.errors import SortedfError
from sortedf.json_values import read_lines

if TYPE_CHECKING:
    import subprocess

SEED = 7
SHARE_ANYWHEN = 0.2
"""Share of kills at any moment from the process's start on; the others come after the
first answer of the run, since few would otherwise."""

ANYWHEN_S = 40.0
AFTER_ANSWER_S = 2.0
"""Longest time from the process's start, or from the first answer, to the kill."""

LOOK_EVERY_S = 0.005


@dataclass(slots=True)
class Batch:
    """One batch, killed and resumed until its output is complete.

    Attributes
    ----------
    finished : dict of str to str
        Output lines that some killed run's journal held.
    lost, twice : int
        Of those, how many were missing later, or had another answer.
    """

    bench: Bench
    number: int
    n: int
    finished: dict[str, str] = field(default_factory=dict)
    lost: int = 0
    twice: int = 0

    @property
    def path(self) -> Path:
        """The input."""
        return self.bench.folder / f"in-{self.number}.jsonl"

    @property
    def output(self) -> Path:
        """The output."""
        return self.bench.folder / f"out-{self.number}.jsonl"

    @property
    def journal(self) -> Path:
        """The journal beside the output."""
        return self.output.with_name(self.output.name + ".journal")

    def start(self) -> subprocess.Popen[str]:
        """Start or resume a run."""
        return self.bench.start(self.bench.ours(self.path, self.output))

    def take_journal(self) -> None:
        """Note the finished requests, and those before that are missing or changed."""
        found = self.in_journal()
        self.compare(found)
        self.finished = found

    def compare(self, found: dict[str, str]) -> None:
        """Count requests that were finished and are missing, or have another line."""
        for custom_id, line in self.finished.items():
            self.lost += custom_id not in found
            self.twice += found.get(custom_id, line) != line

    def in_journal(self) -> dict[str, str]:
        """Return the output lines whose entries are whole."""
        if not self.journal.exists():
            return {}
        whole = self.journal.read_bytes().rpartition(b"\n")[0].split(b"\n")[1:]
        entries = map(json.loads, whole)
        return {entry["custom_id"]: json.dumps(entry["output"]) for entry in entries}

    def check_output(self) -> None:
        """Check that each request occurs once, in order; finished lines are kept."""
        contents = [line for _, line in read_lines(self.output, SortedfError)]
        ids = [content["custom_id"] for content in contents]
        if ids != [f"r{i}" for i in range(self.n)]:
            raise RuntimeError(f"{self.output}: requests are missing or there twice.")
        self.compare({c["custom_id"]: json.dumps(c) for c in contents})


def run(settings: Settings) -> list[Row]:
    """Kill runs until there are enough kills; every batch runs to its end."""
    journal = Journal("kills", settings)
    kills, n = settings.pick(50, 2), settings.pick(600, 60)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sortedf-kills-") as name:
        bench = Bench(Path(name))
        bench.prepare()
        done = 0
        while done < kills:
            batch = Batch(bench, len(rows), n)
            key = f"batch {batch.number}, kills from {done}"
            rows.append(journal.row(key, partial(_batch, batch, kills - done)))
            done += len(rows[-1]["kills"])
    return rows


def _batch(batch: Batch, most: int) -> Row:
    """Kill runs of one batch, up to a limit, until its output is complete."""
    rng = np.random.default_rng([SEED, batch.number])
    batch.bench.write_batch(batch.path, batch.n, seed=batch.number)
    kills: list[Row] = []
    while not batch.output.exists() and len(kills) < most:
        row = _kill(batch, rng)
        if row is not None:
            kills.append(row)
    if not batch.output.exists() or batch.journal.exists():
        batch.bench.run(batch.bench.ours(batch.path, batch.output))
    batch.check_output()
    return {
        "batch": batch.number,
        "n": batch.n,
        "lost": batch.lost,
        "twice": batch.twice,
        "kills": kills,
    }


def _kill(batch: Batch, rng: np.random.Generator) -> Row | None:
    """Kill a run at a random moment; None if it ended before."""
    had = len(batch.finished)
    run = batch.start()
    began = time.perf_counter()
    anywhen = rng.random() < SHARE_ANYWHEN
    while not anywhen and run.poll() is None and len(batch.in_journal()) <= had:
        time.sleep(LOOK_EVERY_S)
    end_s = time.perf_counter() + rng.uniform(
        0, ANYWHEN_S if anywhen else AFTER_ANSWER_S
    )
    while run.poll() is None and time.perf_counter() < end_s:
        time.sleep(LOOK_EVERY_S)
    run.send_signal(signal.SIGKILL)
    killed = run.wait() == -signal.SIGKILL
    if not killed and run.returncode != 0:
        raise RuntimeError((batch.bench.folder / "stderr").read_text()[-4000:])
    done = batch.output.exists()
    if not done:
        batch.take_journal()
    if not killed:
        return None
    return {
        "anywhen": bool(anywhen),
        "after_s": time.perf_counter() - began,
        "finished_before": had,
        "finished": batch.n if done else len(batch.finished),
    }


def page(rows: list[Row]) -> str:
    """How many kills, when, and what was lost."""
    n = rows[0]["n"]
    kills = [kill for row in rows for kill in row["kills"]]
    middle = sum(0 < kill["finished"] < n for kill in kills)
    lost, twice = (str(sum(row[what] for row in rows)) for what in ("lost", "twice"))
    columns = ["kills", "of them with some requests done", "batches", "lost", "twice"]
    values = [str(len(kills)), str(middle), str(len(rows)), lost, twice]
    return "\n\n".join(
        [
            f"`kill -9` at random moments of `sortedf run-batch` with a real engine, "
            f"batches of {n} requests; after each kill the same command goes on. "
            "Lost: a request that had finished before a kill and had not after it; "
            "twice: one that had another answer after it. In each output every "
            "request stands once, in order; the benchmark ends where it does not.",
            markdown_table(columns, [values]),
        ]
    )


SPEC = Spec("Kills of a batch at random moments", run, page, needs=("vllm", "commands"))
