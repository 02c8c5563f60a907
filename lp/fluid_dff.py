"""The fluid bound on a better row than memory: `fluid-dff`.

The fluid bound (`sortedf.bounds.fluid`) requires only that the weights of the requests
running in a step sum to at most a capacity, with weights that depend on how long a
request has been running. So it holds equally for each row of `lp.dff` and for every sum
of such rows: replace the KV held by `phi`, the budget by `phi(K)` and the volume `v` by
`sum_j phi(w_j)`. A request of volume 0 adds at least its `o`.

The best sum is found by ascent. The main part of the bound,
`sum_k (V_k - v_k / 2) = sum_{i,k} min(v_i, v_k) / 2` with volumes in units of the
capacity, is concave in the weights of the rows. Its slope in `v_i` is the number of
requests with larger volumes, plus one half. The method of Frank and Wolfe moves towards
the row with the largest slope, as far as the bound rises.

The gain is large if few requests fit together and leave much memory unused: at M =
4,200 and documents up to 4,096 tokens, 4 to 5 % at n = 2,000 and 100,000. If requests
of many sizes fill memory well, no row of this kind gains anything, since a fractional
mixture of full steps satisfies them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lp.cap_rows import PlacesRow, TokensRow, cap_rows
from lp.dff import RoundedRow
from sortedf.bounds import Bound, register_bound
from sortedf.bounds.fluid import SCALE, fluid, row_certificate
from sortedf.bounds.table import always
from sortedf.fluid_schedule import mean_busy_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds import BoundOptions
    from sortedf.instance import Instance

    Floats = NDArray[np.float64]
    Row = RoundedRow | PlacesRow | TokensRow
    Mixture = list[tuple[Row, int]]
    """Rows and their weights."""

MAX_COUNT = 12
"""Largest number of requests per row for which divisors are tried."""

DIVISORS = 7
"""Divisors tried for each count."""

SAMPLE = 4000
"""Approximate size of the sample on which the mixture is chosen."""

ROUNDS = 30
"""Rounds of the ascent."""

STEPS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
"""Step lengths of a round, from the mixture towards the new row."""

WEIGHT = 2**20
"""Weights of the rows are multiples of `1 / WEIGHT`, in units of their limits."""


@register_bound(
    "fluid-dff",
    about="the fluid bound on a sum of rows: memory, rounded, and caps on a step",
    cost="O(n log n)",
    quick=always,
)
def fluid_dff(instance: Instance, options: BoundOptions) -> Bound:
    """Fluid bound on the best sum of rounded rows found; never below "fluid".

    Rows are chosen for the backlog of all requests, which affects only their quality.
    The bound is then evaluated in Python integers, each request's share rounded down to
    a multiple of `1 / SCALE` and the sum up. The certificate is the rows and weights.
    """
    plain = fluid(instance, options)
    if not instance.num_requests:
        return plain
    mixture = best_mixture(instance)
    value = fluid_on(instance, mixture)
    if value <= plain.value:
        return plain
    rounded = [(row.divisor, w) for row, w in mixture if isinstance(row, RoundedRow)]
    places = sum(w for row, w in mixture if isinstance(row, PlacesRow))
    tokens = sum(w for row, w in mixture if isinstance(row, TokensRow))
    return Bound(value, row_certificate(instance, value, rounded, places, tokens))


def fluid_on(instance: Instance, mixture: Mixture) -> int:
    """Fluid bound on a sum of rows with integer weights, exactly."""
    arrival, decode = instance.arrival.tolist(), instance.decode.tolist()
    limit = sum(row.limit * weight for row, weight in mixture)
    volume, moment = _terms(instance, mixture)
    busy_ids = [i for i, v in enumerate(volume) if v]
    total: int = sum(decode[i] for i, v in enumerate(volume) if not v) * SCALE
    busy_times = mean_busy_times(
        [arrival[i] for i in busy_ids], [volume[i] for i in busy_ids], limit
    )
    for k, busy in enumerate(busy_times):
        i = busy_ids[k]
        twice = 2 * volume[i]
        share = busy + ((decode[i] - arrival[i]) * twice - moment[i]) * limit
        total += share * SCALE // (twice * limit)
    return -(-total // SCALE)


def _terms(instance: Instance, mixture: Mixture) -> tuple[list[int], list[int]]:
    """Volumes and moments of all requests, as Python integers."""
    volume = moment = np.zeros(instance.num_requests, dtype=object)
    for row, weight in mixture:
        v, m = row.terms(instance)
        volume, moment = volume + weight * v, moment + weight * m
    return volume.tolist(), moment.tolist()


def best_mixture(instance: Instance) -> Mixture:
    """Search for the sum of rows with the largest fluid bound of a backlog."""
    memory = candidates(instance.usable_kv // instance.engine.block_size)
    rows: list[Row] = [*memory, *cap_rows(instance)]
    stride = -(-instance.num_requests // SAMPLE)
    sample = instance.subset(np.arange(0, instance.num_requests, stride))
    terms = [row.terms(sample, exact=False) for row in rows]
    volume = np.array([v / row.limit for row, (v, _) in zip(rows, terms, strict=True)])
    moment = np.array([m / row.limit for row, (_, m) in zip(rows, terms, strict=True)])
    share = _ascend(volume, moment, sample.decode.astype(np.float64))
    # A row of large limit needs a smaller weight for the same share.
    largest = max(row.limit for row in rows)
    whole = [
        (row, int(part * WEIGHT) * largest // row.limit)
        for row, part in zip(rows, share.tolist(), strict=True)
    ]
    return [(row, weight) for row, weight in whole if weight]


def candidates(capacity: int) -> list[RoundedRow]:
    """Candidate rows; the first is the memory row itself."""
    divisors = {capacity}
    for count in range(1, MAX_COUNT + 1):
        low, high = capacity // (count + 1) + 1, capacity // count
        if low <= high:
            divisors |= set(np.geomspace(low, high, DIVISORS).astype(int).tolist())
    return [RoundedRow(capacity, d) for d in sorted(divisors, reverse=True)]


def _ascend(volume: Floats, moment: Floats, decode: Floats) -> Floats:
    """Share of each row in the mixture; they add up to 1.

    Parameters
    ----------
    volume, moment : float64 array, shape (rows, n)
        In units of the rows' limits.
    decode : float64 array, shape (n,)
    """
    alone = [_backlog(v, m, decode) for v, m in zip(volume, moment, strict=True)]
    share = np.zeros(len(volume))
    share[np.argmax(alone)] = 1.0
    best = max(alone)
    for _ in range(ROUNDS):
        rank = np.argsort(np.argsort(share @ volume))
        towards = np.zeros(len(volume))
        towards[np.argmax(volume @ (len(rank) - rank - 0.5))] = 1.0
        tried = [(1 - step) * share + step * towards for step in STEPS]
        values = [_backlog(x @ volume, x @ moment, decode) for x in tried]
        if max(values) <= best:
            break
        best, share = max(values), tried[int(np.argmax(values))]
    return share


def _backlog(volume: Floats, moment: Floats, decode: Floats) -> float:
    """Fluid bound of a backlog with these volumes and moments, in floating point."""
    busy = volume > 0
    ascending = np.sort(volume[busy])
    middle = np.cumsum(ascending) - ascending / 2
    before = moment[busy] / (2 * volume[busy])
    return float(decode.sum() + middle.sum() - before.sum())
