"""Every benchmark still runs, and says so clearly where it lacks its data."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import SPECS, main
from online.executor.vllm_version import installed_version
from tests.real_data import FOLDER, HAS_DATA

pytestmark = pytest.mark.slow


def cases():
    """All names; those that start an engine bring vLLM's own warnings along."""
    marks = (
        pytest.mark.vllm,
        pytest.mark.filterwarnings("ignore"),
        pytest.mark.skipif(installed_version() is None, reason="no vLLM installed"),
    )
    return [
        pytest.param(name, marks=marks if "vllm" in spec.needs else ())
        for name, spec in sorted(SPECS.items())
    ]


@pytest.mark.parametrize("name", cases())
def test_runs_and_keeps_raw_rows(name, tmp_path):
    """A dry run writes a page and the rows behind it, environment first."""
    needs = SPECS[name].needs
    if "data" in needs and not HAS_DATA:
        pytest.skip(f"no real traces in {FOLDER}; set SORTEDF_DATA")
    if "commands" in needs:  # tests/online/executor/batch goes the same way
        pytest.skip("starts engines as commands of their own, for minutes")
    if name == "rank_worth_trained":
        pytest.skip("reads trained scores; test_rank_worth writes some for it")
    folders = ["--data", str(FOLDER), "--results", str(tmp_path)]
    assert main([name, "--quick", *folders]) == 0
    lines = (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    facts, *rows = map(json.loads, lines)
    assert {"commit", "numpy", "python", "unit_s"} <= set(facts)
    assert rows
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"`python -m benchmarks {name} --quick`" in page
    assert "mean nothing" in page
