"""Kills of `sortedf run-batch` at random moments, with a real engine."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.batch_runs import Bench
from benchmarks.registry import Row, Settings, Spec, add, markdown_table

if TYPE_CHECKING:
    import subprocess

SEED = 7
SHARE_ANYWHEN = 0.2
"""Kills that come at any moment from the process's start on; the others come after the
first answer of the run, of which there would be few otherwise."""

ANYWHEN_S = 40.0
AFTER_ANSWER_S = 2.0
"""Longest time from the process's start, or from the first answer, to the kill."""

LOOK_EVERY_S = 0.005


@dataclass(slots=True)
class Batch:
    """One batch, on its way through kills to its output.

    Attributes
    ----------
    finished : dict of str to str
        Output lines that some killed run's journal held.
    """

    bench: Bench
    number: int
    n: int
    finished: dict[str, str] = field(default_factory=dict)

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
        """Start a run, or go on with it."""
        return self.bench.start(self.bench.ours(self.path, self.output))

    def take_journal(self) -> None:
        """Note what is finished, and that nothing finished before is gone or new."""
        found = self.in_journal()
        for custom_id, line in self.finished.items():
            if found.get(custom_id) != line:
                raise RuntimeError(f"{custom_id} was lost or answered again.")
        self.finished = found

    def in_journal(self) -> dict[str, str]:
        """Return the output lines whose entries are whole."""
        if not self.journal.exists():
            return {}
        whole = self.journal.read_bytes().rpartition(b"\n")[0].split(b"\n")[1:]
        entries = map(json.loads, whole)
        return {entry["custom_id"]: json.dumps(entry["output"]) for entry in entries}

    def check_output(self) -> None:
        """Every request once, in order; who was finished kept its line."""
        lines = self.output.read_text(encoding="utf-8").splitlines()
        contents = [json.loads(line) for line in lines]
        ids = [content["custom_id"] for content in contents]
        if ids != [f"r{i}" for i in range(self.n)]:
            raise RuntimeError(f"{self.output}: requests are missing or there twice.")
        for content in contents:
            line = self.finished.get(content["custom_id"])
            if line is not None and line != json.dumps(content):
                raise RuntimeError(f"{content['custom_id']} was answered again.")


def run(settings: Settings) -> list[Row]:
    """Kill until there were enough kills; let the last batch come to its end."""
    kills, n = settings.pick(50, 2), settings.pick(600, 60)
    rng = np.random.default_rng(SEED)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sortedf-kills-") as name:
        bench = Bench(Path(name))
        bench.prepare()
        number = 0
        while len(rows) < kills:
            batch = Batch(bench, number, n)
            bench.write_batch(batch.path, n, seed=number)
            while not batch.output.exists() and len(rows) < kills:
                row = _kill(batch, rng)
                if row is not None:
                    rows.append({"batch": number, "n": n, **row})
            if not batch.output.exists() or batch.journal.exists():
                bench.run(bench.ours(batch.path, batch.output))
            batch.check_output()
            number += 1
    return rows


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
        "lost": 0,
        "twice": 0,
    }


def page(rows: list[Row]) -> str:
    """How many kills, when, and that nothing was lost."""
    middle = sum(0 < row["finished"] < row["n"] for row in rows)
    batches = len({row["batch"] for row in rows})
    columns = ["kills", "of them with some requests done", "batches", "lost", "twice"]
    values = [str(len(rows)), str(middle), str(batches), "0", "0"]
    return "\n\n".join(
        [
            f"`kill -9` at random moments of `sortedf run-batch` with a real engine, "
            f"batches of {rows[0]['n']} requests; after each kill the same command "
            "goes on. A violation, which would end the benchmark, is a finished "
            "request that is lost or has another answer later, or an output in which "
            "a request is missing, there twice or out of order.",
            markdown_table(columns, [values]),
        ]
    )


add("kills", Spec("Kills of a batch at random moments", run, page))
