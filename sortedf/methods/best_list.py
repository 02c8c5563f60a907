"""The best schedule of several list rules and backfill windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sortedf.arrays import exact_sum
from sortedf.improve.objective import Objective
from sortedf.methods.areas import area_orders
from sortedf.methods.table import METHODS, RULES, Method, Outcome
from sortedf.placement import place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]

PORTFOLIO = ("svf", "mc-sf", "total-size", "fcfs", "sorted-f")
"""Rules in the order in which they are tried until the time limit, best first."""

GROUPS_UP_TO = 5000
"""Requests up to which `sorted-f` is quick; above, `quantile-greedy` replaces it."""

WINDOWS = (20, 5, 0)
"""Backfill windows tried if none is given."""

CAPPED_WINDOWS = (100, *WINDOWS)
"""Backfill windows for an engine with caps on a step.

The next request of the list may wait for memory while others could run, or the other
way round: for 2,000 requests, `max_num_seqs` 256 and 200,000 tokens, mc-sf is 18 %
better with 100.
"""


def best_list(instance: Instance, options: Options) -> Outcome:
    """Place every rule of the portfolio with every window, and return the best.

    If the engine has caps on a step, lists by areas come after the rules
    (`sortedf.methods.areas`). Ties go to the earlier. At least one list is placed
    whatever the time limit, and the search ends early if every request starts on
    arrival, which is optimal, or if a known bound is met. After Ctrl-C the result is
    the best schedule so far.
    """
    search = _Lists(options.objective or Objective())
    try:
        complete = search.run(instance, options)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        return replace(search.best, complete=False, interrupted=True)
    assert search.best is not None
    return replace(search.best, complete=complete)


@dataclass(slots=True, eq=False)
class _Lists:
    """Best schedule of the lists placed so far."""

    objective: Objective
    best: Outcome | None = None

    def run(self, instance: Instance, options: Options) -> bool:
        """Place the lists in turn; return whether the time limit allowed all."""
        least = exact_sum(instance.decode)
        if options.objective is None and options.lower_bound is not None:
            least = max(least, options.lower_bound)
        for name, order in self._orders(instance, options):
            for window in windows_for(instance, options):
                schedule = place(instance, order, backfill=window)
                if self._offer(Outcome(schedule, name, window)).schedule.tel == least:
                    return True
                if options.out_of_time():
                    return False
        return True

    def _orders(
        self, instance: Instance, options: Options
    ) -> Iterator[tuple[str, Ints]]:
        """Yield the lists with the names of their rules."""
        for name in portfolio(instance, makespan=self.objective.makespan):
            yield name, RULES[name](instance, options)
        for order in area_orders(instance):
            yield "area", order

    def _offer(self, found: Outcome) -> Outcome:
        """Keep an outcome if it is better than the best so far; return the best."""
        rating = self.objective.rating
        if self.best is None or rating(found.schedule) < rating(self.best.schedule):
            self.best = found
        return self.best


def windows_for(instance: Instance, options: Options) -> tuple[int, ...]:
    """Backfill windows that are tried: the given one, or those for the engine."""
    if options.backfill is not None:
        return (options.backfill,)
    return CAPPED_WINDOWS if instance.engine.caps_steps else WINDOWS


def portfolio(instance: Instance, *, makespan: bool = False) -> tuple[str, ...]:
    """Names of the rules for an instance's size and the objective."""
    names: tuple[str, ...]
    few = instance.num_requests <= GROUPS_UP_TO
    names = PORTFOLIO if few else (*PORTFOLIO[:-1], "quantile-greedy")
    if instance.engine.caps_steps:
        names = (*names, "area")
    return ("lpt", *names) if makespan else names


METHODS.register("best-list")(
    Method(
        best_list,
        about="best of several rules and placements",
        guarantee="that of svf or, with caps on a step, area, if window 0 is tried",
        cost="as its slowest rule",
        any_objective=True,
    )
)
