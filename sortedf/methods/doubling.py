"""Doubling: a constant ratio for every backlog, without a selection of groups.

For time limits `tau` that grow by a constant factor, take the requests with `o <= tau`
in order of volume as long as their volumes fit in `M tau`. They are at least as many
as any schedule completes by `tau`, and those not taken before are listed next, by
answer length. Placed without backfill, all of them are completed `5 tau` steps after
those of the limits before, so that the `k`-th completion is at most 20 times the `k`-th
completion of any schedule if limits double. With factor e and the best of `SHIFTS`
first limits the total is at most 14.1 times the optimum. The proof, also of the
constant with a cap on the number of requests, is in
`proofs_checks/test_claim_doubling.py`. Doubling for sums of completion times is due to
Chakrabarti et al. (ICALP 1996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.methods.areas import shares_of_caps
from sortedf.methods.table import register_rule
from sortedf.placement import place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]

SHIFTS = 16
"""First limits that are tried: `exp(k / SHIFTS)` for `k < SHIFTS`."""


@register_rule(
    "doubling",
    about="requests that fit into time limits tau growing by a factor, by volume, each "
    "lot by answer length",
    guarantee="14.1 (19.7 with a cap on requests), backlogs, backfill 0",
    cost="O(n log n log T), 16 placements",
)
def doubling(instance: Instance, options: Options) -> Ints:
    """Return the best of the lists of all first limits, placed without backfill."""
    best: tuple[int, Ints] | None = None
    for k in range(SHIFTS):
        order = doubling_order(instance, float(np.exp(k / SHIFTS)), float(np.e))
        tel = place(instance, order).tel
        if best is None or tel < best[0]:
            best = tel, order
        if options.out_of_time():
            break
    assert best is not None
    return best[1]


def doubling_order(instance: Instance, first: float, factor: float) -> Ints:
    """List the requests by the first time limit that takes them, then by answer.

    Parameters
    ----------
    instance : Instance
    first : float
        First limit `tau`, in steps, at least 1 and less than `factor`.
    factor : float
        Each limit is this many times the one before, above 1.

    Returns
    -------
    int64 array, shape (n,)
    """
    answer = instance.decode
    area, most = _areas(instance)
    by_area = np.argsort(area, kind="stable")
    stage = np.full(instance.num_requests, -1, dtype=np.int64)
    left = instance.num_requests
    tau, number = first, 0
    while left:
        short = answer[by_area] <= tau
        used = np.cumsum(np.where(short, area[by_area], 0.0))
        taken = by_area[short & (used <= most * tau)]
        new = taken[stage[taken] < 0]
        stage[new] = number
        left -= len(new)
        tau, number = tau * factor, number + 1
    order: Ints = np.lexsort((answer, stage))
    return order


def _areas(instance: Instance) -> tuple[NDArray[np.float64], float]:
    """Area of each request, and how much of it any schedule completes in a step.

    The area is `v / M`. With a cap `K` on the number of requests it is
    `2 v / M + o / K`, the weights for which the proof gives the least constant.
    """
    shares = shares_of_caps(instance)
    if instance.engine.max_num_seqs is None:
        return shares[0], 1.0
    return 2 * shares[0] + shares[1], 3.0
