"""Random numbers of the searches, the same on every machine."""

from __future__ import annotations

from sortedf.jit import kernel

RANDOM_FACTOR, RANDOM_MODULUS = 48271, 2**31 - 1
"""Lehmer's generator: its products fit 64 bits with and without the JIT."""


@kernel
def next_random(state: int) -> int:
    """Return the next state."""
    return state * RANDOM_FACTOR % RANDOM_MODULUS


@kernel
def skewed(low: float, high: float, state: int) -> float:
    """Return a random number from `low` to `high`, small ones more often.

    Uses only arithmetic with equal results on every machine.
    """
    share = state / RANDOM_MODULUS
    return low + (high - low) * share * share
