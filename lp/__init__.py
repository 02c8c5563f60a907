"""Relaxations and lower bounds; builds on `sortedf` only.

What is here by name is found without an import: the package is an entry point of the
group `sortedf.plugins`.
"""

from lp.prices import certify

__all__ = ["certify"]
