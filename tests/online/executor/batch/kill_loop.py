"""Runs batches with a stub engine in children that are killed at random moments.

Run as `python -m tests.online.executor.batch.kill_loop FOLDER KILLS SEED`; prints what
was seen as JSON. The children are forks, so that none imports anything.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from online.executor.batch.job import run_job
from tests.online.executor.batch.stub import (
    StubEngine,
    job_for,
    read_lines,
    request,
    serve_with,
    write_batch,
)

NUM_REQUESTS = 24
SLOWEST_S = 0.006


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill until there were enough kills and the last batch is complete."""
    rng = random.Random(seed)
    seen = {"kills": 0, "batches": 0, "kept": [], "run_s": warm_up(folder / "warm")}
    while seen["kills"] < kills:
        batch = folder / f"batch-{seen['batches']}"
        batch.mkdir()
        one_batch(batch, rng, seen)
        seen["batches"] += 1
    print(json.dumps(seen))


def warm_up(folder: Path) -> float:
    """Run a batch here, so that the children import nothing; return its seconds."""
    folder.mkdir()
    write_batch(folder / "in.jsonl", [request(f"r{i}") for i in range(NUM_REQUESTS)])
    run(folder, folder / "calls.txt")
    (folder / "out.jsonl").unlink()
    began = time.perf_counter()
    run(folder, folder / "calls.txt")
    return time.perf_counter() - began


def one_batch(folder: Path, rng: random.Random, seen: dict) -> None:
    """Run one batch to its end through as many kills as it takes."""
    names = [f"r{i}" for i in range(NUM_REQUESTS)]
    requests = [
        request(name, "raise" if i % 7 == 3 else name) for i, name in enumerate(names)
    ]
    requests[5]["url"] = "/v1/embeddings"
    write_batch(folder / "in.jsonl", requests)
    output, calls = folder / "out.jsonl", folder / "calls.txt"
    finished: set[str] = set()
    while not output.exists():
        calls.unlink(missing_ok=True)
        killed = run_and_kill(folder, calls, rng.uniform(0, seen["run_s"]))
        seen["kills"] += killed
        asked = set(calls.read_text().split()) if calls.exists() else set()
        assert not asked & finished, f"answered twice: {asked & finished}"
        finished = in_journal(folder / "out.jsonl.journal")
        if killed:
            seen["kept"].append(len(finished))
    # Killed after the output was there, but before the journal was gone.
    if (folder / "out.jsonl.journal").exists():
        run(folder, calls)
    assert not (folder / "out.jsonl.journal").exists()
    lines = read_lines(output)
    assert [line["custom_id"] for line in lines] == names
    assert [bool(line["error"]) for line in lines] == [
        i % 7 == 3 or i == 5 for i in range(NUM_REQUESTS)
    ]


def run_and_kill(folder: Path, calls: Path, after_s: float) -> bool:
    """Start a run and kill it after a moment; say whether it was still there."""
    pid = os.fork()
    if pid == 0:
        try:
            run(folder, calls)
        finally:
            os._exit(0)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def run(folder: Path, calls: Path) -> None:
    """One run, as the command does it."""
    delays = random.Random(os.getpid())
    engine = StubEngine(calls, lambda: delays.uniform(0, SLOWEST_S), at_once=2)
    run_job(job_for(folder), serve_with(engine), lambda *_: None)


def in_journal(path: Path) -> set[str]:
    """Return the ids whose lines are whole."""
    if not path.exists():
        return set()
    whole = path.read_bytes().rpartition(b"\n")[0].split(b"\n")[1:]
    return {json.loads(line)["custom_id"] for line in whole}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
