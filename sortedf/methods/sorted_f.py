"""Sorted-F (arXiv 2508.06133): groups of least F one after another, then placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.exact_dp import exact_dp
from sortedf.groups.local_swap import local_swap
from sortedf.groups.pool import Pool, Selector
from sortedf.groups.quantile_greedy import quantile_greedy
from sortedf.methods.table import register_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]

EXACT_UP_TO = 100
"""Requests up to which `sorted-f` selects exactly, if the states are not too many."""

MAX_STATES = 10**9
"""Requests squared times budget up to which `sorted-f` selects exactly."""

LOCAL_SWAP_UP_TO = 2000
"""Requests up to which `sorted-f` selects by local swaps."""

GUARANTEE = "48 with exact groups, backlogs"


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


@register_rule(
    "sorted-f",
    about="least F = sum of o / size^2 first, selector by size",
    guarantee=GUARANTEE,
    cost="as the selector",
)
def sorted_f(instance: Instance, options: Options) -> Ints:
    """Sorted-F with the selector that suits the number of requests."""
    return sorted_f_order(instance, selector_for(instance), options)


@register_rule(
    "exact-dp",
    about="Sorted-F, groups by dynamic programming",
    guarantee=GUARANTEE,
    cost="O(n^2 M) a group",
    max_requests=EXACT_UP_TO,
)
def sorted_f_exact_dp(instance: Instance, options: Options) -> Ints:
    """Sorted-F with exact groups."""
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


def selector_for(instance: Instance) -> Selector:
    """Selector that `sorted-f` uses: the best one that is fast at this size."""
    n = instance.num_requests
    if n <= EXACT_UP_TO and n * n * instance.usable_kv <= MAX_STATES:
        return exact_dp
    if n <= LOCAL_SWAP_UP_TO:
        return local_swap
    return quantile_greedy
