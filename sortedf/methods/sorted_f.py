"""Sorted-F (arXiv 2508.06133): groups of least F one after another, then placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.co_start import CoStart
from sortedf.groups.exact import Exact
from sortedf.groups.exact_dp import exact_dp
from sortedf.groups.local_swap import local_swap
from sortedf.groups.pool import Pool, Selector
from sortedf.groups.quantile_greedy import quantile_greedy
from sortedf.methods.table import METHODS, RULES, Method, Outcome, register_rule
from sortedf.placement import place
from sortedf.registry import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]

DP_UP_TO = 100
"""Requests up to which `exact-dp` is meant to be used."""

LOCAL_SWAP_UP_TO = 2000
"""Requests up to which `local-swap` is meant to be used."""

GUARANTEE = "48 with exact groups, backlogs, backfill 0"


def groups(instance: Instance, select: Selector, options: Options) -> Iterator[Ints]:
    """Yield Sorted-F's groups: request ids by answer length, then id.

    Each is what `select` picks from the requests that no earlier group took:
    `X` with small `F(X) = sum of o / |X|^2` and peaks that fit the budget together.
    """
    pool = Pool.of(instance)
    rng = np.random.default_rng(options.seed)
    while len(pool.ids):
        positions = select(pool, rng)
        yield pool.ids[positions]
        pool = pool.without(positions)
        options.report(instance.num_requests - len(pool.ids), instance.num_requests)


def sorted_f_order(instance: Instance, select: Selector, options: Options) -> Ints:
    """All groups, one after the other; shape (n,)."""
    found = list(groups(instance, select, options))
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def register_proven(
    name: str,
    make: Callable[[Options], Exact | CoStart],
    *,
    about: str,
    guarantee: str,
    cost: str,
    same_as: str | None = None,
) -> None:
    """Enter Sorted-F with a selector that a time limit can stop into both tables.

    The outcome is complete only if no selection was stopped.
    """

    def rule(instance: Instance, options: Options) -> Ints:
        return sorted_f_order(instance, make(options), options)

    def solve(instance: Instance, options: Options) -> Outcome:
        select = make(options)
        order = sorted_f_order(instance, select, options)
        window = options.backfill or 0
        schedule = place(instance, order, backfill=window)
        return Outcome(schedule, name, window, select.complete)

    register(RULES, "rule", name)(rule)
    method = Method(solve, about, guarantee, cost, same_as=same_as)
    register(METHODS, "method", name)(method)


register_proven(
    "sorted-f",
    Exact,
    about="groups of least F = sum of o / size^2 first, as exact",
    guarantee=GUARANTEE,
    cost="as exact",
)
register_proven(
    "exact",
    Exact,
    about="Sorted-F, groups by Lagrangian bounds and a search",
    guarantee=GUARANTEE,
    cost="some sorts a group; at worst O(n^2 M) a size",
    same_as="sorted-f",
)
register_proven(
    "sorted-f-co-start",
    CoStart,
    about="Sorted-F, larger groups: they fit when started together",
    guarantee="none proven",
    cost="as exact",
)


@register_rule(
    "exact-dp",
    about="Sorted-F, groups by dynamic programming",
    guarantee=GUARANTEE,
    cost="O(n^2 M) a group",
    max_requests=DP_UP_TO,
)
def sorted_f_exact_dp(instance: Instance, options: Options) -> Ints:
    """Sorted-F with exact groups by dynamic programming."""
    return sorted_f_order(instance, exact_dp, options)


@register_rule(
    "local-swap",
    about="Sorted-F, groups by local search",
    guarantee="none proven",
    cost="O(n^2) a pass",
    max_requests=LOCAL_SWAP_UP_TO,
)
def sorted_f_local_swap(instance: Instance, options: Options) -> Ints:
    """Sorted-F with groups improved by swaps."""
    return sorted_f_order(instance, local_swap, options)


@register_rule(
    "quantile-greedy",
    about="Sorted-F, groups by sampled quantiles",
    guarantee="none proven",
    cost="O(n) a group",
)
def sorted_f_quantile_greedy(instance: Instance, options: Options) -> Ints:
    """Sorted-F with groups cut at sampled quantiles."""
    return sorted_f_order(instance, quantile_greedy, options)
