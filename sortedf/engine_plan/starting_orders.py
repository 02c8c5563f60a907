"""Initial orders of a plan: list rules, and own work with several weights."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.seconds import request_work
from sortedf.engine_model import EngineModel
from sortedf.instance import Instance
from sortedf.methods.table import RULES
from sortedf.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Ints = NDArray[np.int64]

TRIED = ("fcfs", "mc-sf", "total-size", "svf")
"""List rules that a search always tries; they take no time."""

GROUPED = "sorted-f"
"""A list rule that it also tries up to `GROUPED_UP_TO` requests."""

GROUPED_UP_TO = 5000

PARTS = 2
"""Weights of a step's capacities are multiples of one over this."""


def by_rule(workload: EngineWorkload, name: str) -> Ints:
    """Order of a list rule of `sortedf.METHODS`, all requests of a backlog together.

    In a stream an engine takes the first in the order among the arrived requests.
    """
    rules = workload.rules
    if name == "fcfs":
        return np.asarray(np.argsort(workload.arrival_s, kind="stable"))
    # The papers count one token more for each request.
    engine = EngineModel(rules.kv_budget + rules.block_size, rules.block_size)
    seen = Instance(workload.prefill, workload.decode, engine=engine)
    return RULES[name](seen, Options())


def by_work(workload: EngineWorkload, weight: tuple[float, ...]) -> Ints:
    """Smallest own work in seconds first.

    Own work is that of a request's tokens alone plus its share of the constant part of
    its steps, which is divided by requests, blocks and tokens with weights `weight`.
    """
    own, shared, constant = request_work(workload)
    work = own + constant * np.array(weight) @ shared
    return np.asarray(np.argsort(work, kind="stable"))


def by_least_work(workload: EngineWorkload) -> Ints:
    """Smallest own work in seconds first, with each request's largest share of a step.

    It is the order of the policy `least-work`: the share of the constant part is the
    largest of those by requests, by blocks and by tokens.
    """
    own, shared, constant = request_work(workload)
    work = own + constant * shared.max(axis=0)
    return np.asarray(np.argsort(work, kind="stable"))


def starting_orders(workload: EngineWorkload) -> dict[str, Ints]:
    """Return initial orders by name."""
    names = [*TRIED]
    if workload.num_requests <= GROUPED_UP_TO:
        names.append(GROUPED)
    orders = {name: by_rule(workload, name) for name in names}
    orders["least-work"] = by_least_work(workload)
    for parts in product(range(PARTS + 1), repeat=3):
        if sum(parts) == PARTS:
            weight = tuple(part / PARTS for part in parts)
            name = ",".join(f"{part:g}" for part in weight)
            orders[f"work {name}"] = by_work(workload, weight)
    return orders
