"""Every reader of the package: a good file of each, and what is asked of a bad one.

A reader is called in a folder that has nothing but its file and `trace.csv`. It may
refuse the file with an error of the package's own, as the command line does, in one
line; or take it, and then what it says must be true, by a check of its own here.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from online.calibration import calibrate, read_samples
from online.executor.batch.batch_file import read_batch
from online.executor.batch.expected_lengths import read_lengths
from online.executor.batch.job import run_job
from online.executor.batch.journal import Journal
from online.executor.hints import Hints
from online.executor.scheduler_options import (
    VARIABLE,
    SchedulerOptions,
    scheduler_options,
)
from online.log_file import read_log
from online.ranking.folder import read_card
from online.ranking.length_calibration import LengthCalibration
from online.ranking.row_reading import read_prompts, read_rows
from online.score_file import read_scores
from sortedf.cli.main import exit_code
from sortedf.step_time import read_step_time
from sortedf.traces import read_trace
from tests.online.executor.batch.stub import (
    StubEngine,
    job_for,
    read_lines,
    request,
    serve_with,
    write_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

KV_BUDGET = 20
PREFILL, DECODE = [5, 3, 8, 2, 9, 4], [3, 7, 2, 5, 1, 6]
TRACE = "prefill_tokens,decode_tokens\n" + "".join(
    f"{s},{o}\n" for s, o in zip(PREFILL, DECODE, strict=True)
)
OPTIMUM = 32
"""Least TEL of this trace; a test computes it."""

BATCH = [request(name, "hello", max_tokens=5) for name in ("a", "b", "c")]


@dataclass(frozen=True)
class Reader:
    """How a kind of file is made, and read.

    Attributes
    ----------
    good : callable
        Returns good files of this kind; called in an empty folder.
    read : callable
        Reads the file of this name, in a folder with nothing but it and `trace.csv`;
        returns an exit code, if the command line was asked. Asserts what must hold.
    name : str
    outputs : tuple of str
        Files that may appear.
    """

    good: Callable[[], list[bytes]]
    read: Callable[[str], int | None]
    name: str = "file.dat"
    outputs: tuple[str, ...] = ()


def command(*arguments: str) -> int:
    """Run the command line as a user would."""
    return exit_code([*arguments, "--json"])


def budget() -> tuple[str, str]:
    return "--kv-budget", str(KV_BUDGET)


# Traces.


def good_traces() -> list[bytes]:
    trace = read_trace("trace.csv")
    names = ["t.csv", "t.jsonl", "t.parquet", "t.csv.gz"]
    from sortedf.traces import write_trace

    for name in names:
        write_trace(trace, name)
    azure = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.1,5,2\n"
        '"2024-05-10 00:00:02",7,1\n'
    )
    listed = json.dumps([{"prompt_tokens": 3, "completion_tokens": 4, "created": 5}])
    return [
        *(Path(name).read_bytes() for name in names),
        azure.encode(),
        listed.encode(),
    ]


def read_a_trace(name: str) -> int:
    out = "schedule.json"
    code = command(
        "solve", name, *budget(), "--method", "fcfs", "--bound", "none",
        "--drop-oversize", "-o", out,
    )  # fmt: skip
    if code == 0:
        trace = read_trace(name)
        start = json.loads(Path(out).read_text())["start"]
        assert len(start) == trace.num_requests
        longest = (trace.prefill + trace.decode).tolist()
        assert [p is None for p in start] == [size > KV_BUDGET for size in longest]
    return code


# Schedules and certificates.


def good_schedules() -> list[bytes]:
    assert (
        command("solve", "trace.csv", *budget(), "--method", "svf", "-o", "s.json") == 0
    )
    return [Path("s.json").read_bytes(), b"[0, 10, 20, 30, 40, 50]"]


def read_a_schedule(name: str) -> int:
    code, said = with_output("check", "trace.csv", name, *budget())
    if code == 0 and said.get("feasible"):
        content = json.loads(Path(name).read_bytes())
        start = content["start"] if isinstance(content, dict) else content
        ends = [p + o for p, o in zip(start, DECODE, strict=True)]
        assert said["total_latency"] == sum(ends) >= OPTIMUM
        for t in range(1, max(ends) + 1):
            rows = zip(start, ends, PREFILL, strict=True)
            held = sum(s + t - p for p, end, s in rows if p < t <= end)
            assert held <= KV_BUDGET
    return code


def good_certificates() -> list[bytes]:
    found = []
    for method in ("fluid", "dual", "growth", "fluid-dff"):
        code = command(
            "bound",
            "trace.csv",
            *budget(),
            "--method",
            method,
            "--certificate",
            "c.json",
        )
        assert code == 0, method
        found.append(Path("c.json").read_bytes())
    return found


def read_a_certificate(name: str) -> int:
    arguments = ("check", "trace.csv", *budget(), "--certificate", name)
    code, said = with_output(*arguments)
    if code == 0:
        assert said["lower_bound"] <= OPTIMUM, said
    return code


def with_output(*arguments: str) -> tuple[int, dict]:
    """Exit code and JSON output of a command, whose standard output is a file."""
    code = command(*arguments)
    text = Path(os.environ["FUZZ_STDOUT"]).read_text() if code in (0, 1) else "{}"
    said = json.loads(text)
    if code == 1:  # read well, and found wrong
        assert False in (said.get("feasible"), said.get("certificate_valid"))
        code = 0
    return code, said


# Batches.


def read_a_batch(name: str) -> None:
    batch = read_batch(name)
    names = [one.custom_id for one in batch.requests]
    assert len(set(names)) == len(names) > 0
    assert all(isinstance(one.body, dict) for one in batch.requests)


def good_journals() -> list[bytes]:
    write_batch(Path("in.jsonl"), BATCH)
    job = job_for(Path())
    journal = Journal(job.output, job.header(read_batch("in.jsonl")))
    answers = [
        (name, f'{{"custom_id": "{name}", "response": "kept", "error": null}}')
        for name in ("b", "a")
    ]
    from online.executor.batch.answer_lines import Answer

    journal.append((name, Answer(line, failed=False)) for name, line in answers)
    journal.close()
    return [journal.path.read_bytes()]


def read_a_journal(name: str) -> None:
    write_batch(Path("in.jsonl"), BATCH)
    before = Path(name).read_bytes()
    try:
        summary = run_job(job_for(Path()), serve_with(StubEngine()), lambda *_: None)
    except Exception:
        assert Path(name).read_bytes() == before
        raise
    lines = read_lines(Path("out.jsonl"))
    assert [line["custom_id"] for line in lines] == ["a", "b", "c"]
    errors = sum(line["error"] is not None for line in lines)
    assert (summary.requests, summary.failed) == (3, errors)
    assert not Path(name).exists()


def read_expected_lengths(name: str) -> None:
    assert all(type(n) is int and n >= 1 for n in read_lengths(name).values())


def read_hints(name: str) -> None:
    """Hints are never refused: what makes no sense is left out."""
    try:
        extra = json.loads(Path(name).read_bytes())
    except (ValueError, RecursionError):
        return
    if isinstance(extra, dict):
        hint = Hints(100).read(extra, 50)
        assert 1 <= hint.predicted <= 50
        assert hint.text is None or isinstance(hint.text, str)


def read_scheduler_options(name: str) -> None:
    os.environ[VARIABLE] = (
        Path(name).read_bytes().decode("utf-8", "replace").replace("\0", "")[:100_000]
    )
    options = SchedulerOptions.of(scheduler_options(None))
    options.make_policy()
    options.make_predictor(100)


# Streams.


def read_some_scores(name: str) -> None:
    scores = read_scores(name, 6)
    assert np.isfinite(scores.score).all()
    assert scores.length is None or (scores.length >= 1).all()


def good_logs() -> list[bytes]:
    assert command("simulate", "trace.csv", *budget(), "-o", "log.jsonl") == 0
    return [Path("log.jsonl").read_bytes()]


def read_a_log(name: str) -> None:
    log = read_log(name)
    assert len(log.prefill) == len(log.decode)


def read_a_calibration(name: str) -> int | None:
    code = command("calibrate", name, "-o", "model.json")
    if code == 0:
        found = calibrate(read_samples(name)).step_time
        assert read_step_time("model.json") == found
        assert math.isfinite(found.constant_s)
        assert found.constant_s > 0
    return code


def good_steps() -> list[bytes]:
    rows = [
        {
            "prefill_tokens": 10 * (k % 3),
            "num_decoding": k,
            "kv_tokens": 100 * k + k % 5,
            "duration_s": 0.01 + 0.001 * k,
        }
        for k in range(8)
    ]
    return ["".join(json.dumps(row) + "\n" for row in rows).encode()]


def read_a_step_time(name: str) -> None:
    found = read_step_time(name)
    assert all(
        math.isfinite(value) and value >= 0
        for value in (found.constant_s, found.prefill_token_s, found.running_s)
    )


def read_weights(name: str) -> int:
    return command(
        "solve", "trace.csv", *budget(), "--objective", "weighted-tel", "--weights",
        name, "--method", "improve", "--time-limit", "0.05", "--bound", "none",
    )  # fmt: skip


# Rankers.


def good_cards() -> list[bytes]:
    from online.ranking.length_calibration import calibrate as calibrate_lengths

    calibration = calibrate_lengths(np.linspace(-1, 1, 50), np.arange(1, 51)).as_dict()
    card = {
        "format": 1,
        "tokenizer": "0" * 64,
        "settings": {"truncation": "head-tail"},
        "max_tokens": 16,
        "calibration": calibration,
    }
    return [json.dumps(card).encode()]


def read_a_card(name: str) -> None:
    card = read_card(".")
    try:
        found = LengthCalibration.from_dict(card["calibration"])
    except (KeyError, TypeError, ValueError):  # as `read_folder` takes them
        return
    lengths = found.lengths([-2.0, 0.0, 2.0], 0.5)
    assert np.isfinite(lengths).all()
    assert (lengths >= 1).all()
    assert (np.diff(lengths) >= 0).all()


def read_training_rows(name: str) -> None:
    rows = read_rows(Path(name))
    assert all(row.response_tokens >= 1 for row in rows.rows)


def read_some_prompts(name: str) -> None:
    assert all(prompt.strip() for prompt in read_prompts(Path(name)))


def constant(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


ROWS = """{"prompt": "what is it", "response_tokens": 5}
{"prompt": "b", "response_tokens": 7}
"""

READERS = {
    "trace": Reader(good_traces, read_a_trace, outputs=("schedule.json",)),
    "schedule": Reader(good_schedules, read_a_schedule),
    "certificate": Reader(good_certificates, read_a_certificate),
    "batch file": Reader(
        lambda: [write_batch(Path("x"), BATCH).read_bytes()], read_a_batch
    ),
    "journal": Reader(
        good_journals,
        read_a_journal,
        "out.jsonl.journal",
        ("in.jsonl", "out.jsonl"),
    ),
    "expected lengths": Reader(
        constant("custom_id,tokens\na,5\nb,7\n", '{"custom_id": "a", "tokens": 5.5}\n'),
        read_expected_lengths,
    ),
    "hints": Reader(
        constant('{"predicted_tokens": 5, "rank_score": 0.5, "rank_text": "x"}'),
        read_hints,
    ),
    "scheduler options": Reader(
        constant(
            '{"policy": "svf", "max_wait_s": 5, "predictor": "history"}',
            '{"policy": "uniboost", "step_time": {"constant_s": 0.1}}',
        ),
        read_scheduler_options,
    ),
    "scores": Reader(constant('{"score": 0.5, "length": 5}\n' * 6), read_some_scores),
    "log": Reader(good_logs, read_a_log),
    "calibration": Reader(good_steps, read_a_calibration, outputs=("model.json",)),
    "step time": Reader(
        constant('{"constant_s": 0.01, "prefill_token_s": 1e-5, "running_s": 0.001}'),
        read_a_step_time,
    ),
    "weights": Reader(constant("1\n2\n3\n4\n5\n6\n"), read_weights),
    "ranker card": Reader(good_cards, read_a_card, "ranker.json"),
    "training rows": Reader(constant(ROWS), read_training_rows),
    "prompts": Reader(constant(ROWS), read_some_prompts),
}
