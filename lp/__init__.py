"""Relaxations and lower bounds; builds on `sortedf` only.

Importing this package registers its bounds and methods.
"""

from lp import dual, fluid_dff, growth_bound, milp, orders, relaxation
from lp.prices import certify

__all__ = [
    "certify",
    "dual",
    "fluid_dff",
    "growth_bound",
    "milp",
    "orders",
    "relaxation",
]
