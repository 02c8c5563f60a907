"""The best schedule of several list rules and backfill windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.arrays import exact_sum
from sortedf.improve.objective import Objective
from sortedf.methods.table import METHODS, RULES, Method, Outcome
from sortedf.placement import place
from sortedf.registry import register

if TYPE_CHECKING:
    from sortedf.instance import Instance
    from sortedf.options import Options

PORTFOLIO = ("svf", "mc-sf", "total-size", "fcfs", "sorted-f")
"""Rules in the order of their promise and speed: a time limit cuts off the end."""

GROUPS_UP_TO = 5000
"""Requests up to which `sorted-f` is quick; above, `quantile-greedy` replaces it."""

WINDOWS = (20, 5, 0)
"""Backfill windows that are tried if none is given."""


def best_list(instance: Instance, options: Options) -> Outcome:
    """Place every rule of the portfolio with every window, and keep the best.

    Ties go to the earlier. At least one schedule is made whatever the time limit, and
    the search ends early when nothing can be better: every request starts on arrival.
    """
    windows = WINDOWS if options.backfill is None else (options.backfill,)
    objective = options.objective or Objective()
    best: Outcome | None = None
    least = exact_sum(instance.decode)
    for name in portfolio(instance, makespan=objective.makespan):
        order = RULES[name](instance, options)
        for window in windows:
            schedule = place(instance, order, backfill=window)
            rating = objective.rating(schedule)
            if best is None or rating < objective.rating(best.schedule):
                best = Outcome(schedule, name, window)
            if best.schedule.tel == least:
                return best
            if options.out_of_time():
                return Outcome(best.schedule, best.found_by, best.backfill, False)
    assert best is not None
    return best


def portfolio(instance: Instance, *, makespan: bool = False) -> tuple[str, ...]:
    """Names of the rules that suit an instance's size, and the objective."""
    few = instance.num_requests <= GROUPS_UP_TO
    names = PORTFOLIO if few else (*PORTFOLIO[:-1], "quantile-greedy")
    return ("lpt", *names) if makespan else names


register(METHODS, "method", "best-list")(
    Method(
        best_list,
        about="best of several rules and placements",
        guarantee="that of svf, if window 0 is tried",
        cost="as its slowest rule",
        any_objective=True,
    )
)
