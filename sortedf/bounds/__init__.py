"""Proven lower bounds on TEL, and the table that `bound` chooses from.

A new bound is one file that registers itself with `register_bound`, here, in `lp`, or
in a package of its own (`sortedf.registry`).
"""

from sortedf.bounds.options import BoundOptions
from sortedf.bounds.proving import bound, prove, together
from sortedf.bounds.table import BOUNDS, Bound, BoundMethod, Stage, register_bound

__all__ = [
    "BOUNDS",
    "Bound",
    "BoundMethod",
    "BoundOptions",
    "Stage",
    "bound",
    "prove",
    "register_bound",
    "together",
]
