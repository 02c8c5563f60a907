"""What the commands read: traces, budgets and what can never run."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.refusals import refused
from tests.sortedf.cli.program import TRACE


def test_arrivals_in_seconds_become_steps(cli, tmp_path):
    """With half a second a step, 3 s are step 6."""
    path = tmp_path / "trace.csv"
    rows = "arrival_s,prefill_tokens,decode_tokens\n0,5,3\n3,6,2\n"
    path.write_text(rows, encoding="utf-8")
    arguments = ("--kv-budget", 10, "--json")
    content = json.loads(cli("solve", path, *arguments, "--step-time", 0.5)[1])
    assert (content["makespan"], content["total_latency"]) == (8, 5)
    content = json.loads(cli("solve", path, *arguments, "--backlog")[1])
    assert content["makespan"] == 5


def test_drop_oversize_says_which(cli, tmp_path):
    """Left out, listed, and null in the schedule file."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE + "10,1\n", encoding="utf-8")
    message = refused(cli("solve", path, "--kv-budget", 10))
    assert "1 of 4 requests can never run" in message
    assert "row 5 (s=10, o=1, needs 11)" in message
    schedule = tmp_path / "schedule.json"
    arguments = ("--kv-budget", 10, "--drop-oversize", "--json")
    code, out, _ = cli("solve", path, *arguments, "-o", schedule)
    assert code == 0
    assert json.loads(out)["dropped"] == [5]
    assert json.loads(schedule.read_text(encoding="utf-8"))["start"][3] is None
    code, out, _ = cli("check", path, schedule, *arguments)
    assert code == 0
    assert json.loads(out)["n"] == 3
    schedule.write_text("[0, null, 5, null]", encoding="utf-8")
    message = refused(cli("check", path, schedule, *arguments))
    assert "row 3 of" in message
    assert "has no start step" in message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0"),
        ("-3", "-3"),
        ("many", "many"),
        ("1e30", "1e30"),
        ("nan", "nan"),
        ("1_0", "1_0"),  # ten, to Python
    ],
)
def test_bad_kv_budget(cli, trace, text, shown):
    """What was given and what is allowed."""
    message = refused(cli("solve", trace, f"--kv-budget={text}"))
    assert message.startswith(f"--kv-budget {shown}: give the size of the KV cache")
    assert "from 1 to 2147483647" in message


@pytest.mark.parametrize("command", ["solve", "compare", "bound"])
def test_missing_kv_budget(cli, trace, command):
    """The size of the memory has no default."""
    message = refused(cli(command, trace))
    assert message.startswith("--kv-budget is missing: give the size")


BAD_FILES = {
    "empty": (b"", "empty"),
    "header only": (b"prefill_tokens,decode_tokens\n", "no requests"),
    "unknown columns": (b"a,b\n1,2\n", "ContextTokens"),
    "no integer": (b"prefill_tokens,decode_tokens\n5,x\n", "line 2"),
    "fraction": (b"prefill_tokens,decode_tokens\n5,1.5\n", "line 2"),
    "zero": (b"prefill_tokens,decode_tokens\n5,1\n0,1\n", "line 3"),
    "negative": (b"prefill_tokens,decode_tokens\n5,-1\n", "line 2"),
    "nan": (b"prefill_tokens,decode_tokens\n5,nan\n", "line 2"),
    "huge": (b"prefill_tokens,decode_tokens\n5,1e30\n", "line 2"),
    "ragged": (b"prefill_tokens,decode_tokens\n5,1\n5\n", "line 3"),
    "broken gzip": (gzip.compress(TRACE.encode())[:-9], "gzip"),
    "binary": (bytes(range(256)), "text"),
}


@pytest.mark.parametrize("kind", sorted(BAD_FILES))
def test_bad_traces(cli, tmp_path, kind):
    """Whatever is wrong with a file is said in one line, and no output is left."""
    content, message = BAD_FILES[kind]
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    output = tmp_path / "schedule.json"
    said = refused(cli("solve", path, "--kv-budget", 10, "-o", output))
    assert str(path) in said
    assert message in said
    assert sorted(tmp_path.iterdir()) == [path]


def test_missing_file_and_folder(cli, tmp_path):
    """A path that is no file."""
    arguments = ("--kv-budget", 10)
    assert "none.csv" in refused(cli("solve", tmp_path / "none.csv", *arguments))
    assert str(tmp_path) in refused(cli("solve", tmp_path, *arguments))


def test_bom_and_crlf_simply_work(cli, tmp_path):
    """Spreadsheets write those."""
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\xef\xbb\xbf" + TRACE.replace("\n", "\r\n").encode())
    assert cli("solve", path, "--kv-budget", 10)[0] == 0
