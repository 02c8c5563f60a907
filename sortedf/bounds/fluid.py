"""The fluid bound: KV as one machine, requests as divisible work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.bounds.table import Bound, always, register_bound
from sortedf.certificate import instance_hash
from sortedf.fluid_schedule import mean_busy_times
from sortedf.row_certificate import RowCertificate
from sortedf.volume import volume, volume_moment

if TYPE_CHECKING:
    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance

SCALE = 2**40
"""Fixed-point scale of one request's share; each is rounded down once."""


@register_bound(
    "fluid",
    about="the cache as one machine of speed M, requests as divisible work",
    cost="O(n log n)",
    quick=always,
)
def fluid(instance: Instance, options: BoundOptions) -> Bound:
    """Fluid bound: KV as one machine of speed `M`, requests as divisible work `v`.

    Let a feasible schedule use `u_i(t)` KV for request `i` in step `t`, spread evenly
    over the time `(t - 1, t]`. Its volume-weighted middle is
    `B_i = p_i + moment_i / (2 v_i)`, so with `e_i = moment_i / (2 v_i)` fixed by the
    lengths alone, `C_i - a_i = B_i + (o_i - e_i) - a_i`. It remains to bound the sum of
    the `B_i` from below.

    As `sum_i u_i(t) <= M`, and nothing runs before its arrival, the `u_i` are a
    feasible flow of the relaxation that may split and interrupt work: minimise
    `sum_i (1 / v_i) * integral of t u_i(t) dt`, with `M` units of work per unit of
    time and `v_i` of each request after `a_i`. In an optimal flow, whenever the work
    of `i` is done before work of `k`, with `k` there already and `v_k < v_i`, swapping
    a piece of size d between times `t1 < t2` changes the sum by
    `d (t2 - t1) (1 / v_i - 1 / v_k) < 0`. So it always serves the smallest `v` that
    has arrived (Smith's rule for mean busy times, with release dates), which
    `sortedf.fluid_schedule` computes. For a backlog it is
    `sum_k (V_k - v_k / (2 M))` with `v` ascending and `V_k = (v_1 + ... + v_k) / M`.

    Also TEL is at least `sum_i o_i`; the larger of the two counts. All arithmetic is
    in integers: each request's share is rounded down to a multiple of `1 / SCALE`, the
    sum up to the next integer, since TEL is one. The certificate is the memory row, or
    no row at all where `sum_i o_i` is as large.

    Runs in `O(n log n)`.
    """
    moments = volume_moment(instance)
    arrival, decode = instance.arrival.tolist(), instance.decode.tolist()
    volumes = volume(instance).tolist()
    budget = instance.usable_kv
    total = 0
    for i, busy in enumerate(mean_busy_times(arrival, volumes, budget)):
        # busy / (2 M v) + (o - a) - moment / (2 v), on the denominator 2 M v.
        v2 = 2 * volumes[i]
        share = busy + ((decode[i] - arrival[i]) * v2 - moments[i]) * budget
        total += share * SCALE // (v2 * budget)
    value, least = -(-total // SCALE), exact_sum(instance.decode)
    rows = [] if value <= least else [(budget // instance.engine.block_size, 1)]
    return Bound(max(value, least), row_certificate(instance, max(value, least), rows))


def row_certificate(
    instance: Instance,
    value: int,
    rows: list[tuple[int, int]],
    places: int = 0,
    tokens: int = 0,
) -> RowCertificate:
    """Make a certificate of divisors and their weights."""
    divisor, weight = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return RowCertificate(
        instance_hash(instance), value, divisor, weight, places, tokens
    )
