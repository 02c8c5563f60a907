"""`improve`: local search from an initial schedule, and its stop rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.checker import check
from sortedf.improve import improve
from sortedf.improve.improving import FIRST_WIDTH
from sortedf.methods.best_list import best_list
from sortedf.methods.table import METHODS, Method, Outcome
from sortedf.segments import horizon
from sortedf.stop import AnyOf, Rounds, Stop, TimeLimit

if TYPE_CHECKING:
    from sortedf.instance import Instance
    from sortedf.options import Options
    from sortedf.schedule import Schedule

EFFORT = 40_000
"""Largest product of requests and beam width searched without a limit."""

LIST_SHARE = 0.25
"""Share of the time limit in which lists are placed."""

MAX_STEPS = 2 * 10**7
"""Horizon in steps above which there is no search: computing its prices, one for each
step, would take seconds and gigabytes.
"""

QUICK_ROUNDS = 4
"""Rounds at most without a limit."""


def improve_outcome(instance: Instance, start: Outcome, options: Options) -> Outcome:
    """Search for a schedule better than a given one.

    Returns
    -------
    Outcome
        The given one if no better schedule is found.
    """
    found = improve(
        instance,
        stop_of(instance, options),
        start=start.schedule,
        seed=options.seed,
        jobs=options.jobs,
        bound=options.lower_bound,
        on_better=options.on_better,
        objective=options.objective,
    )
    best = start
    if found.found:
        best = Outcome(found.schedule, "improve", None)
    interrupted = found.interrupted
    complete = not (interrupted or options.out_of_time())
    return replace(best, complete=complete, interrupted=interrupted)


def stop_of(instance: Instance, options: Options) -> Stop:
    """Combine the caller's stop rules; a few rounds if there are none."""
    rules = [] if options.stop is None else [options.stop]
    if options.time_limit_s is not None:
        rules.append(TimeLimit(options.seconds_left()))
    if not rules:
        widest = EFFORT // max(instance.num_requests, 1)
        doublings = (widest // FIRST_WIDTH).bit_length()
        rules.append(Rounds(max(1, min(QUICK_ROUNDS, doublings))))
    return AnyOf(*rules)


def search(instance: Instance, options: Options) -> Outcome:
    """Search from the given start, or from the best list.

    If the horizon exceeds `MAX_STEPS` steps, that start is returned.
    """
    if options.start is not None:
        start = Outcome(_checked(instance, options.start), "start", None)
    else:
        start = best_list(instance, options.with_share_of_time(LIST_SHARE))
        if start.interrupted:
            return start
    if horizon(instance) > MAX_STEPS:
        return start
    return improve_outcome(instance, start, options)


def _checked(instance: Instance, start: Schedule) -> Schedule:
    """Return the start; raise ValueError unless it is feasible for this instance."""
    if start.instance is not instance:
        raise ValueError("start is a schedule of another instance.")
    report = check(instance, start)
    if not report.feasible:
        raise ValueError(f"start is no feasible schedule: {report.violations[0]}")
    return start


METHODS.register("improve")(
    Method(
        search,
        about="beam search by prices of memory, annealing",
        guarantee="that of its initial schedule",
        cost="seconds; anytime with a limit",
        any_objective=True,
        searches=True,
        by_segment=True,
    )
)
