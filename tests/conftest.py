"""Hypothesis profiles, the fast subset's rules, and the command line.

`SORTEDF_TESTS=desk` draws other examples each time. `SORTEDF_TESTS=fast` (`make
test-fast`) draws few of them, and holds every test to its mark: one that is not marked
`slow` has `FAST_S` seconds of processor time, one that is not marked `vllm` no vLLM.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from numba.core import event

from sortedf.cli.main import exit_code

if TYPE_CHECKING:
    from collections.abc import Generator

# One thread for tiny tensors, said before torch is loaded: two that wait for each other
# lose a multiple of their time as soon as another process runs.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests press Ctrl-C, and a process that a script starts in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_OK = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("desk", deadline=None, suppress_health_check=SLOW_OK)
settings.register_profile(
    "fast", settings.get_profile("ci"), max_examples=10, suppress_health_check=SLOW_OK
)
PROFILE = os.environ.get("SORTEDF_TESTS", "ci")
settings.load_profile(PROFILE)

FAST_S = 5.0
"""Seconds of processor time, its child processes included; without compiling."""

COMPILING = event.TimingListener()
event.register("numba:compile", COMPILING)

# vLLM's engines in this process freeze the heap when they start, unfreeze it when they
# stop, and collect over all of it seven times: a million objects, seconds. Here it
# stays frozen from the first start on, and later engines collect over what is newer.
gc.freeze, gc.unfreeze = cache(gc.freeze), lambda: None

if PROFILE == "fast":
    sys.modules["vllm"] = None  # type: ignore[assignment]  # its import fails


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Hold a test of the fast subset to its time."""
    before, compiled = os.times(), _compiled_s()
    yield
    used = sum(os.times()[:4]) - sum(before[:4])
    if PROFILE == "fast" and used > FAST_S and _compiled_s() == compiled:
        pytest.fail(f"took {used:.1f} s of processor time: mark it slow.")


def _compiled_s() -> float:
    return COMPILING.duration if COMPILING.done else 0.0


@pytest.fixture
def cli(capsys):
    """Run a command; return its exit code, standard output and standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = exit_code([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def package(tmp_path):
    """Install a package with some modules and entry points; give what runs sortedf."""

    def install(name, *, group="sortedf.commands", modules=(), **entry_points):
        for module, text in dict(modules).items():
            (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        (folder / "METADATA").write_text(head, encoding="utf-8")
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        text = "\n".join([f"[{group}]", *lines, ""])
        (folder / "entry_points.txt").write_text(text, encoding="utf-8")

    def sortedf(*arguments):
        command = [sys.executable, "-m", "sortedf", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "120"}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )

    sortedf.install = install
    return sortedf
