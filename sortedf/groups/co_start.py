"""Groups that can start together: feasible by their memory profile, not by peaks.

The sum of peaks charges every request for its last step, but short answers complete
before long ones reach their peaks. If all requests of a group `X` start in the same
step, usage stays within the budget if and only if it does at each completion,

    for each j in X:   sum of (s_i + o_j) over i in X with o_i >= o_j   <=   M

(terms in whole blocks). Every group that fits by its peaks satisfies this, and often
further requests can be added. The selection is a heuristic: its `F` is only known to be
at most that of the best group by peaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.core import undominated
from sortedf.groups.exact import Exact
from sortedf.groups.pool import group_key
from sortedf.groups.table import register_selector
from sortedf.instance import peak_kv_of
from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool
    from sortedf.options import Options

    Ints = NDArray[np.int64]

PROMPT_SHARES = (0.0, *np.geomspace(1 / 128, 0.5, 13).tolist(), 0.7, 0.9)
"""Weights of the prompt against the answer in the greedy orders that are tried."""


@register_selector(
    "sorted-f-co-start",
    about="Sorted-F, larger groups: they fit when started together",
    guarantee="none proven",
    cost="as exact",
)
class CoStart:
    """Selector of groups that can start together; one candidate is the exact group."""

    def __init__(self, options: Options) -> None:
        self._by_peaks = Exact(options)

    @property
    def complete(self) -> bool:
        """Whether the best group by peaks was found each time."""
        return self._by_peaks.complete

    def __call__(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """Select a group of small `F` that can start together; deterministic.

        Requests are taken in order of `(1 - x) o + x s`, for each `x` of the
        `PROMPT_SHARES`, as long as they fit, and the prefix of least `F` is kept; also
        in the order that begins with the best group by peaks. The best of these and of
        that group is used, so that there is a group even if the predicted length of a
        request exceeds the budget.
        """
        by_peaks = self._by_peaks(pool, rng)
        some = _worth_trying(pool)
        orders = [
            some[np.argsort((1 - x) * pool.decode[some] + x * pool.prefill[some])]
            for x in PROMPT_SHARES
        ]
        rest = np.setdiff1d(some, by_peaks)  # ascending: by answer length
        orders.append(np.concatenate([by_peaks, rest]))
        filled = [_filled(pool, order) for order in orders]
        groups = [*(group for group in filled if len(group)), by_peaks]
        return np.sort(min(groups, key=lambda group: group_key(pool, group)))


def _worth_trying(pool: Pool) -> Ints:
    """Positions that are not dominated by as many requests as could start together.

    One with a shorter answer and no longer prompt is better in any group.
    """
    first = np.sort(
        peak_kv_of(pool.prefill, np.ones_like(pool.decode), pool.block_size)
    )
    size = int(np.count_nonzero(np.cumsum(first) <= pool.kv_budget))
    return np.flatnonzero(undominated(pool.prefill, size))


def _filled(pool: Pool, order: Ints) -> Ints:
    """Prefix of least `F` of the requests that fit when taken in an order."""
    chosen = np.empty(len(order), dtype=np.int64)
    size = _fill_together(
        pool.prefill, pool.decode, order, pool.kv_budget, pool.block_size, chosen
    )
    return chosen[:size]


@kernel
def _fill_together(
    prefill: Ints,
    decode: Ints,
    order: Ints,
    budget: int,
    block: int,
    chosen: Ints,
) -> int:
    """Take the requests that fit, in order; return the number that gives the least `F`.

    `chosen` is filled with them (modified in place). Members are sorted by answer
    length, each with the total KV in the step of its completion.
    """
    member = np.empty(len(order), dtype=np.int64)
    used = np.empty(len(order), dtype=np.int64)
    size = total = best = 0
    best_f = np.inf
    for i in order:
        s, o = prefill[i], decode[i]
        k = 0
        while k < size and decode[member[k]] < o:
            k += 1
        own = -(-(s + o) // block) * block
        for j in range(k, size):
            own += -(-(prefill[member[j]] + o) // block) * block
        fits = own <= budget
        for j in range(size):
            t = decode[member[j]]
            if t > o or not fits:
                break
            fits = used[j] - (-(s + t) // block) * block <= budget
        if not fits:
            continue
        for j in range(size):
            t = decode[member[j]]
            if t <= o:
                used[j] -= (-(s + t) // block) * block
        for j in range(size, k, -1):
            member[j], used[j] = member[j - 1], used[j - 1]
        member[k], used[k] = i, own
        chosen[size] = i
        size += 1
        total += o
        f = total / (size * size)
        if f <= best_f:
            best, best_f = size, f
    return best
