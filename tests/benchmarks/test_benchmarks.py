"""Every benchmark still runs, and says so clearly where it lacks its data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import DEFAULT_DATA, main
from benchmarks.registry import SPECS
from online.executor.door import installed_version

HAS_DATA = (Path(DEFAULT_DATA) / "traces").is_dir()
NEEDS_DATA = {"latency", "groups", "dual", "lp_orders", "bound_growth"}
NEEDS_DATA |= {"online", "tails", "amin", "rank_worth"}
NEEDS_DATA |= {"ranking", "ranking_ablations", "ranking_cost", "ranking_size"}
NEEDS_DATA |= {"ranking_depth"}
STARTS_COMMANDS = {"batch", "kills"}
"""Minutes of engine starts; tests/online/executor/batch goes the same way."""

NEEDS_RESULTS = {"rank_worth_trained"}
"""Read what another benchmark wrote; test_rank_worth writes it for them."""

NEEDS_VLLM = {"engine", "engine_gains", "scheduler_cost", "device_idle"}


def cases():
    """All names; those that start an engine bring vLLM's own warnings along."""
    marks = (
        pytest.mark.vllm,
        pytest.mark.filterwarnings("ignore"),
        pytest.mark.skipif(installed_version() is None, reason="no vLLM installed"),
    )
    return [
        pytest.param(name, marks=marks if name in NEEDS_VLLM else ())
        for name in sorted(SPECS)
    ]


@pytest.mark.parametrize("name", cases())
def test_runs_and_keeps_raw_rows(name, tmp_path):
    """A dry run writes a page and the rows behind it, environment first."""
    if name in NEEDS_DATA and not HAS_DATA:
        pytest.skip(f"no real traces in {DEFAULT_DATA}; set SORTEDF_DATA")
    if name in STARTS_COMMANDS:
        pytest.skip("starts engines as commands of their own, for minutes")
    if name in NEEDS_RESULTS:
        pytest.skip("needs the results of another benchmark")
    assert main([name, "--quick", "--results", str(tmp_path)]) == 0
    lines = (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    facts, *rows = map(json.loads, lines)
    assert {"commit", "numpy", "python", "unit_s"} <= set(facts)
    assert rows
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"`python -m benchmarks {name} --quick`" in page
    assert "mean nothing" in page


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
