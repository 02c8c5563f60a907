"""What a kill may cost: nothing lost, nothing answered twice, and counted if it was."""

from __future__ import annotations

import json

import pytest

from benchmarks.engine.kills import Batch, page
from benchmarks.engine.parts.batch_runs import Bench


@pytest.fixture
def batch(tmp_path):
    """A batch of three requests of which two had finished before a kill."""
    found = Batch(Bench(tmp_path), 0, 3)
    found.finished = {"r0": entry("r0", "a"), "r1": entry("r1", "b")}
    return found


def entry(custom_id, text):
    return json.dumps({"custom_id": custom_id, "response": text})


def write_journal(batch, *entries, cut=""):
    lines = [json.dumps({"header": True})]
    for line in entries:
        custom_id = json.loads(line)["custom_id"]
        lines.append(json.dumps({"custom_id": custom_id, "output": json.loads(line)}))
    batch.journal.write_text("".join(f"{line}\n" for line in lines) + cut)


def test_a_journal_that_kept_everything(batch):
    """A line that was being written when the kill came counts for nothing."""
    write_journal(batch, *batch.finished.values(), entry("r2", "c"), cut='{"custom')
    batch.take_journal()
    assert (batch.lost, batch.twice) == (0, 0)
    assert sorted(batch.finished) == ["r0", "r1", "r2"]


def test_what_is_gone_or_new_is_counted(batch):
    write_journal(batch, entry("r1", "another"))
    batch.take_journal()
    assert (batch.lost, batch.twice) == (1, 1)


def test_an_output_with_another_answer(batch):
    lines = [entry("r0", "a"), entry("r1", "another"), entry("r2", "c")]
    batch.output.write_text("".join(f"{line}\n" for line in lines))
    batch.check_output()
    assert (batch.lost, batch.twice) == (0, 1)


@pytest.mark.parametrize(
    "names", [["r0", "r1"], ["r0", "r1", "r1"], ["r1", "r0", "r2"]]
)
def test_an_output_that_is_not_whole(batch, names):
    batch.output.write_text("".join(f"{entry(name, 'a')}\n" for name in names))
    with pytest.raises(RuntimeError, match="missing or there twice"):
        batch.check_output()


def test_the_page_counts_over_all_batches():
    kill = {"finished_before": 0, "finished": 4}
    rows = [
        {"batch": 0, "n": 9, "lost": 0, "twice": 1, "kills": [kill, kill]},
        {"batch": 1, "n": 9, "lost": 2, "twice": 0, "kills": [kill | {"finished": 0}]},
    ]
    assert "| 3 | 2 | 2 | 2 | 1 |" in page(rows)
