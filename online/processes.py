"""Child processes that do not import from the current folder.

Python puts the current folder first on the path of a process started with `-m` or `-c`,
as joblib's, multiprocessing's and vLLM's processes are. A file `pickle.py` in that
folder, for example among downloaded traces, would be executed by them.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that keeps the current folder off Python's path."""

HOME = str(Path(__file__).resolve().parents[1])
"""Folder from which this package was imported."""


@contextmanager
def without_current_folder() -> Iterator[None]:
    """Set `PYTHONSAFEPATH` for child processes that libraries start."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def import_path() -> list[str]:
    """Return the import path of this process without the current folder.

    The folder stays if this package itself was imported from it.
    """
    here = os.path.realpath(os.curdir)
    left_out = () if here == HOME else (here,)
    return [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and os.path.realpath(entry) not in left_out
    ]
