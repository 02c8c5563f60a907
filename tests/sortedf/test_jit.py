"""How kernels are compiled."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest
from numba.core.caching import CacheImpl

from sortedf import jit
from sortedf.jit import kernel

pytestmark = pytest.mark.kernel


@kernel
def added(x: int, y: int) -> int:
    return x + y


@kernel
def with_numbers(x: int) -> int:
    return added(x, 0) + added(x, 1) + added(2, x)


def test_numbers_in_the_code_share_a_kernel():
    """`added` was compiled again for 0, 1 and 2, and so was all that it calls."""
    assert with_numbers(5) == 18
    if not numba.config.DISABLE_JIT:
        with_numbers.recompile()  # else it may come from the cache, without `added`
        assert added.signatures == [(numba.int64, numba.int64)]


@pytest.mark.slow
def test_the_first_run_says_what_it_waits_for(tmp_path):
    """It took half a minute without a word; the second one is silent."""
    trace = tmp_path / "requests.csv"
    trace.write_text("prefill_tokens,decode_tokens\n3,4\n5,6\n")
    command = [sys.executable, "-m", "sortedf", "solve", str(trace)]
    command += ["--kv-budget", "20", "--method", "svf", "--json"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stderr
        for _ in range(2)
    ]
    line = [] if numba.config.DISABLE_JIT else [f"sortedf: {jit.COMPILING}"]
    # The first line says what was read.
    assert [text.splitlines()[1:] for text in said] == [line, []]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_run_without_a_folder_for_compiled_code(monkeypatch, caplog):
    """In a read-only container every command ended in a traceback of numba."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(jit._FIRST, "_logged", False)
    monkeypatch.setattr(jit._FIRST, "uncached", False)
    caplog.set_level("INFO", "sortedf.jit")

    @kernel
    def doubled(x: int) -> int:
        return 2 * x

    assert doubled(4) == 8
    assert jit.UNCACHED in caplog.text
