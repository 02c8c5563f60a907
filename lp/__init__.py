"""Relaxations and lower bounds; builds on `sortedf` only.

Importing this package registers its bounds and methods.
"""

from lp import branching, dual, fluid_dff, growth_bound, milp, orders, relaxation
from lp.prices import certify

__all__ = [
    "branching",
    "certify",
    "dual",
    "fluid_dff",
    "growth_bound",
    "milp",
    "orders",
    "relaxation",
]
