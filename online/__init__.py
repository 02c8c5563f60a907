"""Policies, simulator and engine; builds on `sortedf` and `lp`."""
