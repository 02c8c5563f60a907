"""`python -m benchmarks --list`: what there is, and how long it took."""

from __future__ import annotations

import json

from benchmarks.__main__ import SPECS, main


def test_each_is_listed_with_the_time_of_its_kept_run(tmp_path, capsys):
    """From the first line of its rows; the papers' page, made of others', is last."""
    (tmp_path / "latency.jsonl").write_text(json.dumps({"benchmark_s": 51.2}) + "\n")
    assert main(["--list", "--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert set(names) == {*SPECS, "together"}
    assert names[-2:] == ["papers", "together"]
    (latency,) = (line for line in lines if line.startswith("latency "))
    assert "51 s" in latency
    assert "not run yet" in lines[-2]
    assert "51 s" in lines[-1]


def test_a_resumed_run_is_marked(tmp_path, capsys):
    """Its time is that of its last pass."""
    facts = {"benchmark_s": 51.2, "resumed": True}
    (tmp_path / "latency.jsonl").write_text(json.dumps(facts) + "\n")
    assert main(["latency", "--list", "--results", str(tmp_path)]) == 0
    assert "51+ s" in capsys.readouterr().out


def test_some_can_be_listed(tmp_path, capsys):
    assert main(["speed", "fuzz", "--list", "--results", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
