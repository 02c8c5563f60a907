"""The program as its own process, and the smallest trace."""

from __future__ import annotations

import subprocess
import sys

TRACE = "prefill_tokens,decode_tokens\n5,3\n6,2\n1,1\n"


def run_module(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m sortedf`; `how` is for `subprocess.run`."""
    command = [sys.executable, "-m", "sortedf", *arguments]
    settings = {"capture_output": True, "text": True, "check": False, **how}
    return subprocess.run(command, **settings)
