"""`step-prices`: prices of requests, blocks and tokens in each step, for all caps.

Where two caps bind, say memory and the number of requests, each row alone and every sum
of rows with weights that stay the same are well below the optimum: places are scarce at
the start, when short answers run, and memory later. The prices are searched for in
`sortedf.bounds.stepwise_prices`, which also sorts the requests so that all capacities
are used evenly; the best placement of these orders comes with the bound.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds.stepwise_prices import stepwise_prices
from sortedf.bounds.table import Bound, Stage, register_bound
from sortedf.capacity_certificate import CapacityCertificate, capacity_prove
from sortedf.certificate import instance_hash
from sortedf.engine_plan.of_instance import workload_of
from sortedf.placement import place

if TYPE_CHECKING:
    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance
    from sortedf.schedule import Schedule

WINDOWS = (0, 20, 100)
"""Backfill windows in which the orders are placed."""

QUICK_UP_TO = 20_000
"""Requests up to which "auto" takes it."""


def _is_quick(instance: Instance, time_limit: float | None) -> bool:
    return (
        instance.engine.caps_steps
        and 1 < instance.num_requests <= QUICK_UP_TO
        and not instance.arrival.any()
    )


@register_bound(
    "step-prices",
    about="prices of requests, memory and tokens in each step; for caps on a step",
    cost="seconds at n = 2,000; evictions allowed",
    quick=_is_quick,
    stage=Stage.CLIMB,
)
def step_prices(instance: Instance, options: BoundOptions) -> Bound:
    """Climb the prices, prove what they are worth, and place the orders they give."""
    if not instance.num_requests:
        nothing = np.zeros(0, dtype=np.int64)
        end = np.ones(1, dtype=np.int64)
        prices = [np.zeros(1, dtype=np.int64)] * 3
        claim = CapacityCertificate(instance_hash(instance), 0, end, *prices)
        return Bound(0, claim, place(instance, nothing))
    limit = options.rest_s
    deadline = None if limit is None else time.perf_counter() + limit
    found = stepwise_prices(workload_of(instance), deadline)
    claim = CapacityCertificate(instance_hash(instance), 0, found.ends, *found.exact)
    claim = replace(claim, bound=capacity_prove(instance, claim))
    schedules = [
        place(instance, order, backfill=window)
        for order in found.orders
        for window in WINDOWS
    ]
    best: Schedule = min(schedules, key=lambda schedule: schedule.tel)
    return Bound(claim.bound, claim, best)
