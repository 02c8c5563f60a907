"""The package itself: its public names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sortedf


def test_every_public_name_is_there():
    """The lazy names, the eager list and what dir() says are the same."""
    for name in sortedf.__all__:
        assert getattr(sortedf, name) is not None
    assert set(sortedf.__all__) == set(sortedf._HOME)
    assert set(sortedf.__all__) <= set(dir(sortedf))


def test_no_module_hides_a_public_name():
    """`import sortedf.check` would put a module where the function should be."""
    folder = Path(sortedf.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    assert not modules & set(sortedf.__all__)


def test_unknown_names_are_attribute_errors():
    """As for any module."""
    with pytest.raises(AttributeError, match="no attribute 'sorted_g'"):
        _ = sortedf.sorted_g


def test_importing_loads_nothing_heavy():
    """Neither the compiler nor plots, until they are needed."""
    code = "import sys, sortedf; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    heavy = {"numba", "scipy", "matplotlib", "pyarrow", "vllm", "torch", "highspy"}
    assert not heavy & loaded


def test_reading_a_trace_does_not_wait_for_the_compiler():
    """Traces and instances are plain numpy."""
    code = "import sys, sortedf; sortedf.Instance([1], [1], 2); sortedf.read_trace; "
    code += "assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
