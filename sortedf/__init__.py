"""Schedules for LLM serving under a KV-cache budget, with proven lower bounds."""

from sortedf.bounds import BOUNDS, Bound, bound
from sortedf.check import CheckReport, check
from sortedf.engine_model import EngineModel
from sortedf.errors import OversizeError, SortedfError, TraceError
from sortedf.instance import Instance
from sortedf.methods import METHODS
from sortedf.placement import place
from sortedf.result import Result, Status
from sortedf.schedule import Schedule
from sortedf.solve import compare, methods_for, solve

__version__ = "0.1.0"

__all__ = [
    "BOUNDS",
    "METHODS",
    "Bound",
    "CheckReport",
    "EngineModel",
    "Instance",
    "OversizeError",
    "Result",
    "Schedule",
    "SortedfError",
    "Status",
    "TraceError",
    "bound",
    "check",
    "compare",
    "methods_for",
    "place",
    "solve",
]
