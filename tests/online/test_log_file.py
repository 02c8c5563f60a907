"""Logs as files: written, read back, refused where broken."""

from __future__ import annotations

import json

import numpy as np
import pytest

from online.log_file import (
    REQUEST_COLUMNS,
    STEP_COLUMNS,
    LogError,
    read_log,
    write_log,
)
from online.metrics import measure
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.errors import OutputError
from sortedf.step_time import UNIT_STEPS
from sortedf.traces import Trace

RULES = EngineModel.vllm(12)
TRACE = Trace([4, 4, 4, 40], [6, 6, 6, 1], [0.0, 0.25, 1.0, 2.0])


@pytest.fixture
def log():
    return simulate(TRACE, "fcfs", RULES, drop_oversize=True)


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_log_survives(log, tmp_path, name):
    """Every column, the pauses and the refused ones."""
    path = tmp_path / name
    write_log(log, path)
    back = read_log(path)
    assert len(log.pauses)
    for column in (*REQUEST_COLUMNS, "pauses"):
        assert np.array_equal(getattr(back, column), getattr(log, column)), column
    for column in STEP_COLUMNS:
        found, expected = getattr(back.steps, column), getattr(log.steps, column)
        assert np.array_equal(found, expected), column
    assert back.refused == log.refused == {3: log.refused[3]}
    figures = [measure(each, RULES, UNIT_STEPS, bound="fluid") for each in (log, back)]
    assert figures[0] == figures[1]


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_the_same_run_is_the_same_file(tmp_path, name):
    """Byte for byte."""
    contents = set()
    for k in range(2):
        path = tmp_path / f"{k}-{name}"
        write_log(simulate(TRACE, "fcfs", RULES, drop_oversize=True), path)
        contents.add(path.read_bytes())
    assert len(contents) == 1


def test_measured_durations_stand_beside_the_clock(log, tmp_path):
    """For calibration."""
    path = tmp_path / "log.jsonl"
    write_log(log, path, duration_s=np.full(log.num_steps, 0.5))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["duration_s"] for row in rows if row["kind"] == "step"} == {0.5}
    assert read_log(path).num_steps == log.num_steps


def test_an_output_that_cannot_be_written(log, tmp_path):
    """Said in one line, and nothing is left."""
    with pytest.raises(OutputError, match="does not exist"):
        write_log(log, tmp_path / "no" / "log.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", 'has no kind "run"'),
        (b"{}\n", 'has no kind "run"'),
        (b'{"kind": "run", "format": 7}\n', "has format 7, not 2"),
        (b'{"kind": "run", "format": 2}\n{\n', "line 2 is no JSON"),
        (
            b'{"kind": "run", "format": 2}\n[]\n',
            r"line 2 is \[\] but must be a JSON object",
        ),
        (
            b'{"kind": "run", "format": 2}\n{"kind": "request", "prefill": 1.5}\n',
            "line 2: prefill is 1.5 but must be an integer",
        ),
        (b"\x1f\x8bnonsense", "cannot be read"),
        (b"\xff\xfe\x00", "line 1: 0xff is no UTF-8"),
    ],
)
def test_bad_logs(tmp_path, content, message):
    """File and line."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(LogError, match=message) as caught:
        read_log(path)
    assert str(path) in str(caught.value)


def test_a_missing_log(tmp_path):
    """No traceback either."""
    with pytest.raises(LogError, match="No such file"):
        read_log(tmp_path / "none.jsonl")
