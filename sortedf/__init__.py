"""Schedules for LLM serving under a KV-cache budget, with proven lower bounds.

Names are loaded when they are first used, so that importing the package costs next to
nothing and reading a trace does not wait for the compiler of the kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortedf.bounds import BOUNDS, Bound, bound
    from sortedf.checker import CheckReport, check
    from sortedf.engine_model import EngineModel
    from sortedf.errors import OutputError, OversizeError, SortedfError, TraceError
    from sortedf.generator import generate
    from sortedf.instance import Instance
    from sortedf.methods import METHODS
    from sortedf.placement import place
    from sortedf.result import Result, Status
    from sortedf.schedule import Schedule
    from sortedf.schedule_file import read_start, write_schedule
    from sortedf.solving import compare, methods_for, solve
    from sortedf.traces import Trace, read, read_trace, write_trace

__version__ = "0.1.0"

__all__ = [
    "BOUNDS",
    "METHODS",
    "Bound",
    "CheckReport",
    "EngineModel",
    "Instance",
    "OutputError",
    "OversizeError",
    "Result",
    "Schedule",
    "SortedfError",
    "Status",
    "Trace",
    "TraceError",
    "bound",
    "check",
    "compare",
    "generate",
    "methods_for",
    "place",
    "read",
    "read_start",
    "read_trace",
    "solve",
    "write_schedule",
    "write_trace",
]

# No module may be called like one of the names above: it would hide the name.
_MODULES = {
    "bounds": ("BOUNDS", "Bound", "bound"),
    "checker": ("CheckReport", "check"),
    "engine_model": ("EngineModel",),
    "errors": ("OutputError", "OversizeError", "SortedfError", "TraceError"),
    "generator": ("generate",),
    "instance": ("Instance",),
    "methods": ("METHODS",),
    "placement": ("place",),
    "result": ("Result", "Status"),
    "schedule": ("Schedule",),
    "schedule_file": ("read_start", "write_schedule"),
    "solving": ("compare", "methods_for", "solve"),
    "traces": ("Trace", "read", "read_trace", "write_trace"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sortedf' has no attribute {name!r}")
    value = getattr(import_module(f"sortedf.{_HOME[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
