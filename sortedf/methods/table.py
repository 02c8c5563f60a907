"""Tables of methods and of list rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sortedf.instance import Instance
from sortedf.options import Options
from sortedf.placement import place
from sortedf.registry import Table

if TYPE_CHECKING:
    from sortedf.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of a method.

    Attributes
    ----------
    schedule : Schedule
    found_by : str
        Name of the list rule or search that produced the schedule.
    backfill : int, optional
        Window of its placement; None if it is not a placed list.
    complete : bool
        False if the time limit, or Ctrl-C, ended the search early.
    lower_bound : int, optional
        Lower bound proven by the method itself, if any.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    schedule: Schedule
    found_by: str
    backfill: int | None
    complete: bool = True
    lower_bound: int | None = None
    interrupted: bool = False


Rule: TypeAlias = Callable[[Instance, Options], NDArray[np.int64]]
"""A list rule: request ids, first to start first."""

Solver: TypeAlias = Callable[[Instance, Options], Outcome]
"""A method: a feasible schedule of an instance."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method with its description.

    Attributes
    ----------
    solve : Solver
    about : str
        Short description.
    guarantee : str
        Proven ratio to the optimum, with its condition, or "none".
    cost : str
        Time as a function of the size.
    max_requests : int, optional
        Size up to which it is practical; a comparison of all methods leaves it out
        above that size, but it can still be chosen by name.
    any_objective : bool
        Whether it minimises `Options.objective`, and not only TEL.
    searches : bool
        Whether it uses `start`, `stop` and `jobs` of the options.
    by_segment : bool
        Whether it is run on each segment of a stream separately, without a loss.
    shared : bool
        Whether it knows shared prefixes of prompts.
    only_shared : bool
        Whether a comparison of all methods has it only where prompts share prefixes.
    same_as : str, optional
        Another name of the same method; a comparison of all methods runs only one.
    for_step_caps : bool
        Whether it differs from another method only if the engine has caps on a step; a
        comparison of all methods leaves it out otherwise.
    """

    solve: Solver
    about: str
    guarantee: str
    cost: str
    max_requests: int | None = None
    any_objective: bool = False
    searches: bool = False
    by_segment: bool = False
    shared: bool = False
    only_shared: bool = False
    same_as: str | None = None
    for_step_caps: bool = False


PACKAGES = ("sortedf.methods", "sortedf.groups")
"""Packages with methods; each group selector is one."""

METHODS: Table[Method] = Table("method", *PACKAGES)
"""Every method, by the name that `solve` takes."""

RULES: Table[Rule] = Table("rule", *PACKAGES)
"""The methods that are list rules, by the same names."""


def register_rule(
    name: str,
    *,
    about: str,
    guarantee: str,
    cost: str,
    max_requests: int | None = None,
    only_shared: bool = False,
    for_step_caps: bool = False,
) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a list rule in both tables.

    Lists are placed with shared prefixes, whether the rule knows them or not.
    """

    def add(rule: Rule) -> Rule:
        def solve(instance: Instance, options: Options) -> Outcome:
            window = options.backfill or 0
            schedule = place(instance, rule(instance, options), backfill=window)
            return Outcome(schedule, name, window)

        method = Method(
            solve,
            about,
            guarantee,
            cost,
            max_requests,
            shared=True,
            only_shared=only_shared,
            for_step_caps=for_step_caps,
        )
        METHODS.register(name)(method)
        return RULES.register(name)(rule)

    return add
