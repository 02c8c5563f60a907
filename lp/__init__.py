"""Relaxations and lower bounds; builds on `sortedf` only.

Its bounds and methods are found by name without an import: the package is an entry
point of the group `sortedf.plugins`.
"""
