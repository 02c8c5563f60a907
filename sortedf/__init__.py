"""Schedules for LLM serving under a KV-cache budget, with proven lower bounds."""

from sortedf.bounds import BOUNDS, Bound, bound
from sortedf.check import CheckReport, check
from sortedf.engine_model import EngineModel
from sortedf.errors import OversizeError, SortedfError, TraceError
from sortedf.generate import generate
from sortedf.instance import Instance
from sortedf.methods import METHODS
from sortedf.placement import place
from sortedf.result import Result, Status
from sortedf.schedule import Schedule
from sortedf.schedule_file import read_start, write_schedule
from sortedf.solve import compare, methods_for, solve
from sortedf.traces import Trace, read, read_trace, write_trace

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
