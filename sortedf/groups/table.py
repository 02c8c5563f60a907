"""Sorted-F (arXiv 2508.06133): groups of least F one after another, then placement.

The table has the group selectors. Each is also a method of the same name, and an option
of the policies that solve Sorted-F repeatedly as requests arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from sortedf.groups.pool import Pool, Selector
from sortedf.methods.table import METHODS, RULES, Method, Outcome
from sortedf.options import Options
from sortedf.placement import place
from sortedf.registry import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

MakeSelector: TypeAlias = Callable[[Options], Selector]
"""Creates a selector for one run.

A selector that a time limit can stop has an attribute `complete`, false if it was.
"""

Maker = TypeVar("Maker", bound=MakeSelector)

SELECTORS: Table[MakeSelector] = Table("group selector", "sortedf.groups")
"""Selectors by the name used for methods and for the policies' option `groups`."""

GUARANTEE = "40 with exact groups, backlogs, backfill 0, no caps"
"""Guarantee of Sorted-F if each group is the best one."""


def register_selector(
    name: str,
    *,
    about: str,
    guarantee: str,
    cost: str,
    max_requests: int | None = None,
    same_as: str | None = None,
) -> Callable[[Maker], Maker]:
    """Return a decorator that registers a selector, and Sorted-F with it as a method.

    See `Method` for the parameters.
    """

    def add(make: Maker) -> Maker:
        def rule(instance: Instance, options: Options) -> Ints:
            return sorted_f_order(instance, make(options), options)

        def solve(instance: Instance, options: Options) -> Outcome:
            select = make(options)
            order = sorted_f_order(instance, select, options)
            window = options.backfill or 0
            schedule = place(instance, order, backfill=window)
            return Outcome(schedule, name, window, getattr(select, "complete", True))

        method = Method(solve, about, guarantee, cost, max_requests, same_as=same_as)
        SELECTORS.register(name)(make)
        RULES.register(name)(rule)
        METHODS.register(name)(method)
        return make

    return add


def groups(instance: Instance, select: Selector, options: Options) -> Iterator[Ints]:
    """Yield Sorted-F's groups: request ids by answer length, then id.

    `select` chooses each group `X` from the requests without a group, with small
    `F(X) = sum of o / |X|^2` and peaks that fit the budget together.
    """
    pool = Pool.of(instance)
    rng = np.random.default_rng(options.seed)
    while len(pool.ids):
        positions = select(pool, rng)
        yield pool.ids[positions]
        pool = pool.without(positions)
        options.report(instance.num_requests - len(pool.ids), instance.num_requests)


def sorted_f_order(instance: Instance, select: Selector, options: Options) -> Ints:
    """Concatenate all groups into one list; shape (n,)."""
    found = list(groups(instance, select, options))
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
