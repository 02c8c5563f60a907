"""Hypothesis profiles (repeatable in CI, random at a desk), and the command line."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from sortedf.cli.main import exit_code

# Tests press Ctrl-C, and a process that a script starts in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_OK = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("desk", deadline=None, suppress_health_check=SLOW_OK)
settings.load_profile("desk" if os.environ.get("SORTEDF_DESK") else "ci")


@pytest.fixture
def cli(capsys):
    """Run a command; return its exit code, standard output and standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = exit_code([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call
