"""What every command says that it read."""

from __future__ import annotations

import json

import pytest

from tests.refusals import refused


@pytest.mark.parametrize("command", ["solve", "bound", "compare", "simulate", "run"])
def test_what_was_read_is_in_the_output(cli, tmp_path, command):
    """Format, columns, numbers of requests, span of arrivals, and offered load."""
    path = tmp_path / "t.csv"
    path.write_text("timestamp,input_length,output_length\n0.5,4,2\n10.5,4,2\n")
    extra = ("--method", "fcfs") if command == "solve" else ()
    extra = ("--methods", "fcfs") if command == "compare" else extra
    code, out, err = cli(command, path, "--kv-budget", 64, "--json", *extra)
    assert code == 0
    read = json.loads(out)["read"]
    assert 0 < read.pop("offered_load") < 1
    assert read == {
        "format": "Mooncake",
        "columns": {
            "prefill": "input_length",
            "decode": "output_length",
            "arrival": "timestamp",
        },
        "time_unit": "s",
        "requests": 2,
        "dropped": 0,
        "span_s": 10.0,
    }
    assert "read 2 requests as Mooncake" in err
    assert "--time-unit" in err


def test_columns_may_be_named(cli, tmp_path):
    """Any file can be read without renaming its columns."""
    path = tmp_path / "t.csv"
    path.write_text("when,in,out\n0,4,2\n10,4,2\n")
    names = "arrival=when,prefill=in,decode=out"
    common = ("solve", path, "--kv-budget", 64, "--method", "fcfs", "--json")
    code, out, _ = cli(*common, "--columns", names)
    assert code == 0
    assert json.loads(out)["read"]["span_s"] == 10
    assert "--columns prefill=" in refused(cli(*common))
    assert "ROLE=NAME" in refused(cli(*common, "--columns", "arrival"))
    assert "has no when2" in refused(cli(*common, "--columns", "arrival=when2"))


def test_oversize_requests_are_no_part_of_the_load(cli, tmp_path):
    """At load 1 an engine that left out the largest request was nearly idle."""
    path = tmp_path / "t.csv"
    rows = "".join(f"{k},4,2\n" for k in range(20))
    path.write_text(f"arrival_s,prefill_tokens,decode_tokens\n{rows}20,900,900\n")
    arguments = ("--kv-budget", 64, "--drop-oversize", "--load", 1, "--json")
    code, out, err = cli("simulate", path, *arguments)
    assert code == 0
    content = json.loads(out)
    assert content["read"]["dropped"] == 1
    [row] = content["rows"]
    # 20 requests that hold 4 and 5 tokens for a step each: 2.8 steps of 64 tokens.
    assert row["load"] == 1
    assert row["rate"] == pytest.approx(21 / (20 * 9 / 64))
    assert "(1 can never run)" in err
    assert "each step is taken as 1 s" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--arrivals", "at-once", "--load", "1,2"), "all requests arrive at 0"),
        (("--arrivals", "at-once", "--rate", 1), "all requests arrive at 0"),
        (("--seeds", 3), "nothing is drawn"),
        (("--bound", "lp"), "unknown bound 'lp'"),
        (("--load", "1,2", "--plot", "x.png", "--plot-kind", "cdf"), "of one load"),
    ],
)
def test_contradictions_are_refused(cli, tmp_path, monkeypatch, options, message):
    """They were ignored, or pooled into one curve."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.csv"
    path.write_text("arrival_s,prefill_tokens,decode_tokens\n0,4,2\n10,4,2\n")
    assert message in refused(cli("simulate", path, "--kv-budget", 64, *options))
    assert not (tmp_path / "x.png").exists()
