"""The default method: the best schedule of several list rules and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.arrays import exact_sum
from sortedf.methods.table import METHODS, RULES, Method, Outcome
from sortedf.placement import place
from sortedf.registry import register

if TYPE_CHECKING:
    from sortedf.instance import Instance
    from sortedf.options import Options

PORTFOLIO = ("svf", "sorted-f", "mc-sf", "total-size", "fcfs")
"""Rules in the order of their promise: a time limit cuts off the end."""

WINDOWS = (20, 5, 0)
"""Backfill windows that are tried if none is given."""


def auto(instance: Instance, options: Options) -> Outcome:
    """Place every rule of the portfolio with every window, and keep the best.

    Ties go to the earlier. At least one schedule is made whatever the time limit, and
    the search ends early when nothing can be better: every request starts on arrival.
    """
    windows = WINDOWS if options.backfill is None else (options.backfill,)
    best: Outcome | None = None
    least = exact_sum(instance.decode)
    for name in PORTFOLIO:
        order = RULES[name](instance, options)
        for window in windows:
            schedule = place(instance, order, backfill=window)
            if best is None or schedule.tel < best.schedule.tel:
                best = Outcome(schedule, name, window)
            if best.schedule.tel == least:
                return best
            if options.out_of_time():
                return Outcome(best.schedule, best.found_by, best.backfill, False)
    assert best is not None
    return best


register(METHODS, "method", "auto")(
    Method(
        auto,
        about="best of several rules and placements",
        guarantee="that of svf",
        cost="as its slowest rule",
    )
)
