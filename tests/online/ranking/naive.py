"""Slow, obvious twins of what ranking computes."""

from __future__ import annotations

import math


def tau_b(a, b):
    """Kendall's tau_b, pair by pair."""
    concordant = discordant = ties_a = ties_b = 0
    n = len(a)
    for i in range(n):
        for j in range(i):
            x, y = sign(a[i] - a[j]), sign(b[i] - b[j])
            concordant += x * y > 0
            discordant += x * y < 0
            ties_a += x == 0
            ties_b += y == 0
    pairs = n * (n - 1) // 2
    return (concordant - discordant) / math.sqrt((pairs - ties_a) * (pairs - ties_b))


def sign(x):
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


def pairs(length, delta):
    """Every pair (longer, shorter) that differs by `delta` of the longer."""
    return {
        (i, j)
        for i, a in enumerate(length)
        for j, b in enumerate(length)
        if a > b and a - b >= delta * a
    }


def pairwise(scores, length, delta, margin):
    """Mean hinge over those pairs."""
    hinges = [
        max(0.0, margin - (scores[i] - scores[j])) for i, j in pairs(length, delta)
    ]
    return sum(hinges) / len(hinges)


def list_mle(scores, length):
    """Minus the log of a product of soft choices, longest first, over the count."""
    left = sorted(range(len(scores)), key=lambda i: -length[i])
    loss, count = 0.0, len(scores)
    while left:
        total = sum(math.exp(scores[i]) for i in left)
        loss -= math.log(math.exp(scores[left.pop(0)]) / total)
    return loss / count
