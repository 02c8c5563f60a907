"""The folder of real traces: tests of them are skipped only where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NAMED = os.environ.get("SORTEDF_DATA")
FOLDER = Path(NAMED or Path(__file__).resolve().parents[2] / "shared" / "data")

HAS_DATA = bool(NAMED) or FOLDER.is_dir()
"""If a folder is named, or is the usual one, a trace that is missing is a failure."""

needs_data = pytest.mark.skipif(
    not HAS_DATA,
    reason=f"no real traces in {FOLDER}; the variable SORTEDF_DATA names their folder",
)
