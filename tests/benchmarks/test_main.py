"""`python -m benchmarks`: what there is, how long it took, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import SPECS, main
from benchmarks.common import registry


def test_each_is_listed_with_the_time_of_its_kept_run(tmp_path, capsys):
    """From the first line of its rows."""
    (tmp_path / "latency.jsonl").write_text(json.dumps({"benchmark_s": 51.2}) + "\n")
    assert main(["--list", "--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert set(names) == {*SPECS, "together"}
    assert names[-1] == "together"
    (latency,) = (line for line in lines if line.startswith("latency "))
    assert "51 s" in latency
    assert sum("not run yet" in line for line in lines) == len(SPECS) - 1
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


def test_what_reads_other_rows_comes_after_them():
    """`papers` looks figures up that all of a run have to be there for."""
    order = list(SPECS)
    for name, spec in SPECS.items():
        assert all(order.index(read) < order.index(name) for read in spec.reads)
    assert {name for name, spec in SPECS.items() if spec.reads} == {
        "papers", "rank_worth_trained"
    }  # fmt: skip


def test_names_are_those_of_files():
    """One file each, in the folder of its kind; nothing else lies beside them."""
    files = {
        path.stem
        for path in Path(registry.__file__).parents[1].glob("*/*.py")
        if path.parent.name != "common" and path.stem != "__init__"
    }
    assert files == set(SPECS)
    assert "latency" in files


def test_without_data_it_says_what_is_missing(tmp_path, capsys):
    """No traceback, and the way to name the folder."""
    arguments = ["latency", "--data", str(tmp_path), "--results", str(tmp_path / "r")]
    assert main(arguments) == 1
    assert "SORTEDF_DATA" in capsys.readouterr().err


def test_unknown_names_are_refused(tmp_path, capsys):
    """The message lists what there is."""
    with pytest.raises(SystemExit) as caught:
        main(["speeed", "--results", str(tmp_path)])
    assert caught.value.code == 2
    assert "latency" in capsys.readouterr().err
