"""Processes that are started here import nothing from the current folder.

Python puts the current folder first on the path of a process that is started with `-m`
or `-c`, as joblib's, multiprocessing's and vLLM's processes are. A file `pickle.py`
that lies there, in a folder of downloaded traces say, would be run by them.
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
"""Environment variable by which Python leaves the current folder out."""

HOME = str(Path(__file__).resolve().parents[1])
"""Where this package was imported from."""


@contextmanager
def without_current_folder() -> Iterator[None]:
    """Let processes that others start for us leave the current folder out."""
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
    """Return what this process imports from, without the current folder.

    The folder stays if this package itself was imported from it.
    """
    here = os.path.realpath(os.curdir)
    left_out = () if here == HOME else (here,)
    return [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and os.path.realpath(entry) not in left_out
    ]
