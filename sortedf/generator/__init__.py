"""Synthetic traces, calibrated to published ones."""

from sortedf.generator.generating import KINDS, generate

__all__ = ["KINDS", "generate"]
