"""Guide of the search: an order of the requests, and the cost of each start.

Prices of KV memory over time make TEL a sum of local costs: see the package. They are
those of the fluid relaxation with slightly less memory than the budget, because no
schedule keeps all of it in use; the starts they recommend are then close to those of
the best schedules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.fluid_prices import fluid_prices
from sortedf.improve.guide_kernels import DUE, FAR, Guide, find_due
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.improve.objective import Objective
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FILLED = 0.96
"""Approximate share of the budget that good schedules use."""

LATE_COST = 10.0
"""Cost of a step after the deadline, in steps of the heaviest request."""

SCANNED = 256
"""Starts of each request evaluated before the best one is refined."""


def make_guide(instance: Instance, objective: Objective) -> tuple[Guide, Ints]:
    """Prepare an instance for the search.

    Returns
    -------
    guide : Guide
        Data by rank, the order in which prices recommend to start the requests.
    order : int64 array, shape (n,)
        Request ids by rank.
    """
    prices = _prices(instance, objective)
    guide = _guide_of(instance, objective, prices)
    # For the makespan alone, all starts cost the same.
    find_due(guide, 0 if objective.makespan else len(prices) // SCANNED + 1)
    tie = -volume(instance) if objective.makespan else volume(instance)
    order = np.lexsort((tie, guide.request[:, DUE]))
    guide = guide._replace(request=guide.request[order], least=guide.least[order])
    return guide, order


def _prices(instance: Instance, objective: Objective) -> Floats:
    """Prices for the steps `t = 1, ..., T`; all equal for the makespan."""
    largest = int(instance.peak.max(initial=1))
    budget = max(int(instance.kv_budget * FILLED), largest)
    budget = min(budget + instance.engine.block_size, instance.kv_budget)
    shrunk = instance.replace(kv_budget=budget)
    if objective.makespan:
        steps = 2 * len(fluid_prices(shrunk)) + int(instance.decode.max(initial=0))
        return np.full(steps, 1 / instance.usable_kv)
    return fluid_prices(shrunk, objective.weight)


def _guide_of(instance: Instance, objective: Objective, prices: Floats) -> Guide:
    """Build the guide by id, with due steps set to the arrivals for now."""
    weight = objective.weights(instance)
    columns = [
        instance.prefill,
        instance.decode,
        instance.arrival,
        weight,
        _deadline(instance, objective),
        volume(instance),
        instance.arrival,
    ]
    steps = np.arange(len(prices) + 1)
    padded = np.concatenate([[0.0], prices])
    return Guide(
        request=np.stack(columns, axis=1),
        least=np.zeros(len(weight)),
        price=np.cumsum(np.stack([padded, padded * steps], axis=1), axis=0),
        late_cost=LATE_COST * float(weight.max(initial=1)),
        budget=instance.usable_kv,
        block=instance.engine.block_size,
        max_seqs=instance.engine.seqs_cap,
        max_tokens=instance.engine.tokens_cap,
        by_end=objective.makespan,
    )


def _deadline(instance: Instance, objective: Objective) -> Ints:
    """Step after which each request is late; none for the largest that may be late."""
    n = instance.num_requests
    if objective.max_latency is None:
        return np.full(n, FAR)
    deadline = instance.arrival + objective.max_latency
    may_be_late = objective.may_be_late(n)
    if may_be_late:
        deadline[np.argsort(volume(instance), kind="stable")[-may_be_late:]] = FAR
    return deadline
