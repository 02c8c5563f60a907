"""Relaxations and lower bounds; builds on `sortedf` only."""
