"""Orders that a plan may start from: who goes first, by what a request costs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.seconds import request_work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PARTS = 2
"""Weights of a step's room are multiples of one over this."""


def first_come(workload: EngineWorkload) -> Ints:
    """First come, first served."""
    return np.argsort(workload.arrival_s, kind="stable")


def by_answer(workload: EngineWorkload) -> Ints:
    """Shortest answer first."""
    return np.lexsort((workload.prefill, workload.decode))


def by_volume(workload: EngineWorkload) -> Ints:
    """Smallest memory-time volume first."""
    s, o = workload.prefill, workload.decode
    return np.argsort(s * o + o * (o - 1) // 2 + o * workload.rules.extra_slots)


def by_work(workload: EngineWorkload, weight: tuple[float, ...]) -> Ints:
    """Smallest own work in seconds first.

    To what a request's tokens cost alone comes its part of the constant of its steps:
    `weight` says how much of that goes by requests, by blocks and by tokens.
    """
    own, shared, constant = request_work(workload)
    return np.argsort(own + constant * np.array(weight) @ shared, kind="stable")


def starting_orders(workload: EngineWorkload) -> dict[str, Ints]:
    """Orders worth trying, by name: list rules, and areas over a grid of weights."""
    orders = {
        "fcfs": first_come(workload),
        "shortest-answer": by_answer(workload),
        "svf": by_volume(workload),
    }
    for parts in product(range(PARTS + 1), repeat=3):
        if sum(parts) == PARTS:
            weight = tuple(part / PARTS for part in parts)
            name = ",".join(f"{part:g}" for part in weight)
            orders[f"work:{name}"] = by_work(workload, weight)
    return orders
