"""Schedules for LLM serving under a KV-cache budget, with proven lower bounds."""

from sortedf.check import CheckReport, check
from sortedf.engine_model import EngineModel
from sortedf.errors import OversizeError, SortedfError, TraceError
from sortedf.instance import Instance
from sortedf.placement import place
from sortedf.schedule import Schedule

__version__ = "0.1.0"

__all__ = [
    "CheckReport",
    "EngineModel",
    "Instance",
    "OversizeError",
    "Schedule",
    "SortedfError",
    "TraceError",
    "check",
    "place",
]
