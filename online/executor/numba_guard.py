"""Lets vLLM on the CPU start after numba was loaded; a plug-in of vLLM.

vLLM calls it in each of its processes (entry points "vllm.general_plugins"), so it
imports nothing of this package, and does nothing where there is no dispatcher.
"""

from __future__ import annotations

import importlib
from typing import Any


def let_numba_live() -> None:
    """Prevent vLLM's dispatcher from failing on objects in llvmlite's modules.

    The dispatcher scans every loaded module with `vars(value).get`. The wrapper of
    llvmlite's library returns for any attribute, also `__dict__`, an object that is no
    dictionary. A `vars` function in the dispatcher's module returns {} for these. A
    version of vLLM without a dispatcher needs nothing.
    """
    try:
        dispatcher = importlib.import_module("vllm.triton_utils.dispatcher")
    except ModuleNotFoundError:
        return

    def vars_of(value: object) -> Any:
        found = vars(value)
        return found if isinstance(found, dict | type(vars(object))) else {}

    dispatcher.vars = vars_of  # type: ignore[attr-defined]
