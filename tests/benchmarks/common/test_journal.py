"""A killed benchmark does not repeat the rows that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.common.journal import Journal, unfinished
from benchmarks.common.registry import Settings


def never():
    raise AssertionError("this row is there already")


def test_rows_survive_a_kill(tmp_path):
    """Also one in the middle of a line."""
    settings = Settings(False, Path("none"), tmp_path)
    first = Journal("trial", settings)
    assert first.row("a", lambda: {"x": 1}) == {"x": 1}
    first.row("b", lambda: {"x": 2})
    path = unfinished("trial", tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write('["c", {"x"')
    second = Journal("trial", settings)
    assert second.row("a", never) == {"x": 1}
    assert second.row("c", lambda: {"x": 3}) == {"x": 3}
    third = Journal("trial", settings)
    assert [third.row(key, never)["x"] for key in "abc"] == [1, 2, 3]


def test_a_failed_row_is_made_again(tmp_path):
    """Nothing is kept of it."""
    settings = Settings(False, Path("none"), tmp_path)
    with pytest.raises(AssertionError):
        Journal("trial", settings).row("a", never)
    assert Journal("trial", settings).row("a", lambda: {"x": 1}) == {"x": 1}


def test_dry_runs_keep_nothing(tmp_path):
    """Their sizes are others."""
    Journal("trial", Settings(True, Path("none"), tmp_path)).row("a", dict)
    assert not unfinished("trial", tmp_path).exists()
