"""The default method: best list, then a search, then the bound's own schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.improve.objective import Objective
from sortedf.methods.best_list import best_list
from sortedf.methods.improve import search
from sortedf.methods.shared_search import search_shared
from sortedf.methods.table import METHODS, Method, Outcome

if TYPE_CHECKING:
    from sortedf.instance import Instance
    from sortedf.options import Options


def auto(instance: Instance, options: Options) -> Outcome:
    """Search; with a given backfill window, return the best list placed with it.

    If the computation of the bound found a better schedule, that is returned. Bounds
    minimise TEL alone, so the two are compared by the objective and its latency cap.

    Where prompts share prefixes, lists are placed and improved by
    `sortedf.methods.shared_search`.
    """
    if instance.prefixes is not None:
        return search_shared(instance, options)
    if options.backfill is not None:
        return best_list(instance, options)
    proven = options.proven
    if proven is None or proven.schedule is None or proven.found_by is None:
        return search(instance, options)
    if options.objective is None and proven.schedule.tel == proven.value:
        return Outcome(proven.schedule, proven.found_by, None)
    found = search(instance, options)
    objective = options.objective or Objective()
    if objective.rating(proven.schedule) >= objective.rating(found.schedule):
        return found
    return replace(
        found, schedule=proven.schedule, found_by=proven.found_by, backfill=None
    )


METHODS.register("auto")(
    Method(
        auto,
        about="best-list, then improve",
        guarantee="that of best-list",
        cost="seconds; anytime with a limit",
        any_objective=True,
        searches=True,
        by_segment=True,
        shared=True,
    )
)
