"""Hypothesis profiles, the fast subset's rules, and the command line.

`SORTEDF_TESTS=desk` draws other examples each time. `SORTEDF_TESTS=fast` (`make
test-fast`) draws few of them, and holds every test to its mark: one that is not marked
`slow` has `FAST_S` seconds of processor time, one that is not marked `vllm` no vLLM.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from numba.core import event

from sortedf.cli.main import exit_code

if TYPE_CHECKING:
    from collections.abc import Generator

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

FAST_S = 10.0
"""Seconds of processor time, its child processes included; without compiling."""

COMPILING = event.TimingListener()
event.register("numba:compile", COMPILING)

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
