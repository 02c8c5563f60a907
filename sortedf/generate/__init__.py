"""Synthetic traces, calibrated to published ones."""

from sortedf.generate.generate import KINDS, generate

__all__ = ["KINDS", "generate"]
