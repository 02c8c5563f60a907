"""Traces: request lengths and arrival times from files of several formats."""

from sortedf.traces.reading import read, read_trace
from sortedf.traces.trace import Trace
from sortedf.traces.writing import write_trace

__all__ = ["Trace", "read", "read_trace", "write_trace"]
