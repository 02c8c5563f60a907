"""Kernels are compiled again when anything that was compiled into them has changed."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

from sortedf.kernel_cache import fingerprint

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.slow,  # each test starts processes, which compile
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]

PARTS = """
from typing import NamedTuple

from sortedf.jit import kernel

FACTOR = 2


class Pair(NamedTuple):
    x: int
    y: int


@kernel
def grown(x):
    return 10 * x
"""

OUTER = """
import parts
from parts import Pair, grown
from sortedf.jit import kernel


@kernel
def outer(pair: Pair):
    return grown(pair.x) * parts.FACTOR + later(pair.y)


@kernel
def later(y):
    return y + 1


print(outer(Pair(3, 4)), sum(outer.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    """Run `outer.py` in a process of its own; return what it prints."""
    (tmp_path / "outer.py").write_text(OUTER, encoding="utf-8")

    def run(*changes):
        text = PARTS
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "parts.py").write_text(text, encoding="utf-8")
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",  # two edits in a second look the same
        }
        command = [sys.executable, str(tmp_path / "outer.py")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_what_is_unchanged_is_not_compiled_again(run):
    """Nor is it where only the words about the code have changed."""
    assert run() == ["65", "0"]
    assert run() == ["65", "1"]
    assert run(("FACTOR = 2", "FACTOR = 2  # twice")) == ["65", "1"]


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (("10 * x", "20 * x"), "125"),
        (("FACTOR = 2", "FACTOR = 3"), "95"),
        (("x: int\n    y: int", "y: int\n    x: int"), "84"),
    ],
    ids=["a kernel", "a constant", "the fields of a tuple"],
)
def test_a_change_in_another_file_is_seen(run, change, value):
    """numba looks only at the file of the kernel that is called."""
    assert run() == ["65", "0"]
    assert run(change) == [value, "0"]


def test_a_class_that_is_gone_leaves_no_traceback(run, tmp_path):
    """The index of a kernel named it, and each call ended in an AttributeError."""
    assert run() == ["65", "0"]
    outer = tmp_path / "outer.py"
    times = outer.stat()
    text = OUTER.replace("(pair: Pair)", "(pair: Duo)").replace("Pair", "Duo")
    outer.write_text(text + "#", encoding="utf-8")
    os.utime(outer, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run(("class Pair", "class Duo")) == ["65", "0"]


def test_fingerprints_are_the_same_in_every_process():
    """Else every process would compile what another one has compiled."""
    from sortedf import kernels

    names = [n for n, v in vars(kernels).items() if hasattr(v, "py_func")]
    assert names
    code = (
        "from sortedf import kernels\n"
        "from sortedf.kernel_cache import fingerprint\n"
        f"print(*[fingerprint(getattr(kernels, n).py_func) for n in {names}])"
    )
    again = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    here = [fingerprint(getattr(kernels, name).py_func) for name in names]
    assert again.stdout.split() == here
    assert len(set(here)) == len(here)
