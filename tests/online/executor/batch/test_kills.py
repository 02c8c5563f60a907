"""Killed at any moment, a batch goes on where it was: nothing lost, nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
KILLS = 200


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    """The loop itself checks every run and every output; see `kill_loop`."""
    module = "tests.online.executor.batch.kill_loop"
    done = subprocess.run(
        [sys.executable, "-m", module, str(tmp_path), str(KILLS), "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["kills"] >= KILLS
    # The kills were not all at the begin, nor all at the end.
    assert 0 in seen["kept"]
    assert any(0 < kept < 24 for kept in seen["kept"])
