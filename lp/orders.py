"""List rules from the relaxation: `sorted-lp`, `alpha-points` and `lp-swap`.

A nearly optimal solution of the linear relaxation distributes each request's start over
several steps. It is obtained from the ascent to the dual bound (`lp.dual`): the random
starts of the last smoothed function. Orders derived from it are placed like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lp.dual import climb
from lp.smoothing import ALPHAS
from sortedf.methods.table import METHODS, Method, Outcome, register_rule
from sortedf.placement import place
from sortedf.segments import segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options
    from sortedf.schedule import Schedule

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MAX_REQUESTS = 1000
"""Requests above which the ascent takes too long for its gain."""

MAX_SWAPPED = 300
"""Requests above which `lp-swap` does not complete its first sweep."""

SWEEPS = 3
"""Passes of `lp-swap` over the list."""

MAX_PLACEMENTS = 20_000
"""Placements tried by `lp-swap` at most."""


@register_rule(
    "sorted-lp",
    about="by mean start in the linear relaxation",
    guarantee="none proven",
    cost="as the dual bound",
    max_requests=MAX_REQUESTS,
)
def sorted_lp(instance: Instance, options: Options) -> Ints:
    """Order by the mean start `sum_t t x_{i,t}`, then id."""
    mean, _ = _starts(instance, options)
    return np.argsort(mean, kind="stable")


def _starts(instance: Instance, options: Options) -> tuple[Floats, Ints]:
    """Climb to the bound of each segment; half a climb is good for no order.

    Returns
    -------
    mean_start : float64 array, shape (n,)
    alpha_start : int64 array, shape (k, n)
        For each of `lp.smoothing.ALPHAS`.
    """
    mean = np.empty(instance.num_requests)
    alpha = np.empty((len(ALPHAS), instance.num_requests), dtype=np.int64)
    for part in segments(instance):
        ascent = climb(part.instance, options.of_bound(report_progress=False))
        if ascent.interrupted:
            raise KeyboardInterrupt
        mean[part.ids] = ascent.mean_start + part.begin
        alpha[:, part.ids] = ascent.alpha_start + part.begin
    return mean, alpha


def alpha_points(instance: Instance, options: Options) -> Outcome:
    """Order by the step in which a share `alpha` of a request has started.

    The order of every `alpha` in `lp.smoothing.ALPHAS` is placed, and the best schedule
    returned; ties in a step go to the earlier mean start.
    """
    mean, alphas = _starts(instance, options)
    window = options.backfill or 0
    orders = [np.lexsort((mean, alpha)) for alpha in alphas]
    schedules = [place(instance, order, backfill=window) for order in orders]
    best = min(schedules, key=lambda schedule: schedule.tel)
    return Outcome(best, "alpha-points", window)


def lp_swap(instance: Instance, options: Options) -> Outcome:
    """Improve the order of `sorted-lp` by swaps, as long as TEL falls.

    A sweep swaps each request with the next one, then with the one after that, and so
    on at doubling distances up to 16. It stops after `SWEEPS`, after `MAX_PLACEMENTS`,
    when a sweep brings no improvement, or at the time limit.
    """
    window = options.backfill or 0
    order = sorted_lp(instance, options)
    best = place(instance, order, backfill=window)
    left = MAX_PLACEMENTS
    for _ in range(SWEEPS):
        before = best.tel
        best, left = _sweep(instance, order, best, window, left, options)
        if best.tel == before or left == 0 or options.out_of_time():
            break
    return Outcome(best, "lp-swap", window, complete=not options.out_of_time())


def _sweep(
    instance: Instance,
    order: Ints,
    best: Schedule,
    window: int,
    left: int,
    options: Options,
) -> tuple[Schedule, int]:
    """One pass over `order` (modified in place)."""
    for distance in (1, 2, 4, 8, 16):
        for k in range(len(order) - distance):
            if left == 0 or options.out_of_time():
                return best, left
            pair = [k, k + distance]
            order[pair] = order[pair[::-1]]
            tried = place(instance, order, backfill=window)
            left -= 1
            if tried.tel < best.tel:
                best = tried
            else:
                order[pair] = order[pair[::-1]]
    return best, left


METHODS.register("alpha-points")(
    Method(
        alpha_points,
        about="by the step in which a share of a request has started in the relaxation",
        guarantee="none proven",
        cost="as the dual bound",
        max_requests=MAX_REQUESTS,
    )
)

METHODS.register("lp-swap")(
    Method(
        lp_swap,
        about="sorted-lp, improved by swaps in the list",
        guarantee="none proven",
        cost=f"{MAX_PLACEMENTS:,} placements at most",
        max_requests=MAX_SWAPPED,
    )
)
