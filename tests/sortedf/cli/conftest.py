"""Traces that the commands are called with."""

from __future__ import annotations

import pytest

from tests.sortedf.cli.program import TRACE


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


@pytest.fixture
def crowd(tmp_path):
    """A trace whose schedules are not all alike."""
    path = tmp_path / "crowd.csv"
    lines = [f"{1 + 37 * k % 90},{1 + 53 * k % 70}\n" for k in range(60)]
    path.write_text("prefill_tokens,decode_tokens\n" + "".join(lines), encoding="utf-8")
    return path
