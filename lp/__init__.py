"""Relaxations and lower bounds; builds on `sortedf` only.

Importing this package registers its bounds and methods.
"""

from lp import dual, orders
from lp.prices import certify

__all__ = ["certify", "dual", "orders"]
