"""The pages that are kept: what the code makes of the rows beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import SPECS, lay_out, main
from benchmarks.common.journal import read_kept

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
KEPT = sorted(path.stem for path in RESULTS.glob("*.jsonl") if path.stem in SPECS)


@pytest.mark.parametrize("name", KEPT)
def test_a_page_follows_from_its_rows(name):
    """A column that was added, or a sentence mended, stands on the kept page too."""
    kept = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    plots = re.findall(r"^!\[(.*)\]\(", kept, flags=re.MULTILINE)
    facts, rows = read_kept(RESULTS / f"{name}.jsonl")
    assert lay_out(name, SPECS[name], facts, rows, plots, quick=False) == kept
    assert all((RESULTS / plot).is_file() for plot in plots)


def test_pages_are_laid_out_again(tmp_path):
    """By `--pages`, without measuring; where nothing is kept it fails."""
    assert main(["scheduler_cost", "--pages", "--results", str(tmp_path)]) == 1
    rows = (RESULTS / "scheduler_cost.jsonl").read_bytes()
    (tmp_path / "scheduler_cost.jsonl").write_bytes(rows)
    assert main(["--pages", "--results", str(tmp_path)]) == 0
    page = (tmp_path / "scheduler_cost.md").read_bytes()
    assert page == (RESULTS / "scheduler_cost.md").read_bytes()
