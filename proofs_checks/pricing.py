"""The dual function in fractions, written straight from its definition."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortedf import Instance


def bracket(instance: Instance, i: int, t: int, price: Sequence[Fraction]) -> Fraction:
    """`t + o - a + sum_j lambda_{t+j} (s + j)`; `price[k]` is that of step `k + 1`."""
    s, o = int(instance.prefill[i]), int(instance.decode[i])
    paid = sum(
        (price[t + j - 1] * (s + j) for j in range(1, o + 1) if t + j <= len(price)),
        Fraction(0),
    )
    return t + o - int(instance.arrival[i]) + paid


def dual_value(
    instance: Instance, price: Sequence[Fraction], latest: int | None = None
) -> Fraction:
    """`D(lambda)`; with `latest`, no request may end after that step.

    Behind the last price a bracket only grows, so starts are scanned up to there.
    """
    total = -instance.kv_budget * sum(price, Fraction(0))
    for i in range(instance.num_requests):
        first, o = int(instance.arrival[i]), int(instance.decode[i])
        last = max(first, len(price)) if latest is None else latest - o
        total += min(bracket(instance, i, t, price) for t in range(first, last + 1))
    return total
