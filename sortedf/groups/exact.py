"""Exact group selection at every size: Lagrangian bounds, then a search of a core."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups.core import Core, MultiplierRanking, best_multiplier, scale_for
from sortedf.groups.fronts import FrontRow, StoppedError, best_choice
from sortedf.groups.pool import largest_size
from sortedf.groups.table import GUARANTEE, register_selector
from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool
    from sortedf.options import Options

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A group and a lower bound on `F`.

    Attributes
    ----------
    positions : int64 array
        Positions in the pool, ascending.
    f : Fraction
        `F` of the group.
    f_lower_bound : Fraction
        No feasible group of the pool has a smaller `F`; equal to `f` unless the search
        was stopped.
    share : float
        Multiplier `a / D` of the last bound, from 0 to 1: an initial value for the
        next selection.
    complete : bool
        False if the search was stopped: the group may not be the best one.
    """

    positions: Ints
    f: Fraction
    f_lower_bound: Fraction
    share: float
    complete: bool


@register_selector(
    "exact",
    about="Sorted-F, groups by Lagrangian bounds and a search",
    guarantee=GUARANTEE,
    cost="some sorts a group; at worst O(n^2 M) a size",
    same_as="sorted-f",
)
@register_selector(
    "sorted-f",
    about="groups of least F = sum of o / size^2 first (arXiv 2508.06133), as exact",
    guarantee=GUARANTEE,
    cost="as exact",
)
class Exact:
    """Exact selector; keeps the multiplier from one group to the next.

    Attributes
    ----------
    complete : bool
        Whether every group so far was proven to be the best: no selection was stopped
        by the time limit or because it had too many states.
    """

    def __init__(self, options: Options) -> None:
        self.complete = True
        self._stop = options.out_of_time
        self._share = 0.5

    def __call__(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """Select the feasible group of least `F`; deterministic."""
        found = select(pool, share=self._share, stop=self._stop)
        self._share = found.share
        self.complete &= found.complete
        return found.positions


def select(
    pool: Pool,
    *,
    share: float = 0.5,
    stop: Callable[[], bool] = lambda: False,
) -> Selection:
    """Select the feasible group of least `F`; ties: larger, then the lower ids.

    Returns the same group as `exact_dp`. Sizes are processed in order of their bounds
    on `F`. For each size the best multiplier is computed first, and then groups are
    searched with a rising target for the sum of answers; each bound and each group
    found excludes other sizes and fixes requests. In the worst case, when very many
    groups have almost the same value and use almost the whole budget, it takes the time
    of a dynamic program over the free requests; otherwise that of a few sorts.

    Parameters
    ----------
    pool : Pool
        Not empty.
    share : float
        Initial multiplier `a / D`; any value gives the same group.
    stop : callable
        Called from time to time; if true, the best group so far is returned with the
        bound on `F` proven so far.
    """
    search = _Search(pool, share)
    complete = search.run(stop)
    f = Fraction(search.best_sum, len(search.best) ** 2)
    bounds = [
        Fraction(least, size**2)
        for size, least in zip(
            search.sizes.tolist(), search.least.tolist(), strict=True
        )
    ]
    return Selection(
        np.sort(search.best),
        f,
        min([f, *bounds]),
        search.multiplier / search.scale,
        complete,
    )


class _Search:
    """State of one selection.

    Attributes
    ----------
    best, best_sum
        Positions and sum of `o` of the best group so far.
    sizes, least : int64 arrays
        Sizes that may still give a better group, and bounds on their sums of `o`.
    core : Core
        Contains the best group, unless that is `best`.
    multiplier : int
        Multiplier of the last bounds, below `scale`.
    """

    def __init__(self, pool: Pool, share: float) -> None:
        largest = largest_size(pool)
        self.pool = pool
        self.scale = scale_for(pool.kv_budget, largest)
        self.core = Core.whole(pool).undominated(largest)
        self.sizes = np.arange(1, largest + 1)
        self.least = self.sizes.copy()  # an answer has 1 token or more
        self.best = np.zeros(1, dtype=np.int64)  # each request fits alone
        self.best_sum = int(pool.decode[0])
        self._own: dict[int, int] = {}  # size: its best multiplier
        self._step: dict[int, int] = {}  # size: next target minus its bound
        self._look(int(share * self.scale))

    def run(self, stop: Callable[[], bool]) -> bool:
        """Search until no better group can exist; False if stopped before."""
        try:
            while len(self.sizes):
                if stop():
                    return False
                # Rounding here affects only the order of the sizes.
                i = int(np.argmin(self.least / self.sizes**2))
                size = int(self.sizes[i])
                if size in self._own:
                    self._search(i, size, stop)
                else:
                    self._tighten(i, size)
        except StoppedError:
            return False
        return True

    def _look(self, multiplier: int) -> None:
        """Raise all bounds at a multiplier, and try the greedy group of its order."""
        self.multiplier = min(multiplier, self.scale - 1)
        core, largest = self.core, int(self.sizes[-1])
        ranking = MultiplierRanking(core, self.multiplier, self.scale, largest)
        chosen = np.empty(len(core.free), dtype=np.int64)
        size = _fill(
            core.decode, core.peak, ranking.order, core.room, len(core.fixed),
            core.spent, chosen,
        )  # fmt: skip
        self._offer(np.concatenate([core.fixed, core.free[chosen[:size]]]))
        self.least = np.maximum(self.least, ranking.least_sums(self.sizes))
        self._drop()
        if len(self.sizes):
            shrunk = ranking.shrunk(self.sizes, self._targets())
            if shrunk is None:
                self.sizes, self.least = self.sizes[:0], self.least[:0]
            else:
                largest = int(self.sizes[-1]) - len(shrunk.fixed)
                self.core = shrunk.undominated(largest)

    def _tighten(self, i: int, size: int) -> None:
        """Compute the best multiplier of a size and raise the bounds of all sizes."""
        multiplier = best_multiplier(self.core, size, self.scale)
        if multiplier is None:
            self._close(i)
            return
        self._own[size] = multiplier
        self._look(multiplier)

    def _search(self, i: int, size: int, stop: Callable[[], bool]) -> None:
        """Search for a group of a size with a sum of `o` slightly above its bound."""
        step = self._step.get(size, 1)
        self._step[size] = 2 * step + 1
        target = min(int(self._targets()[i]), int(self.least[i]) + step)
        multipliers = [self._own[size], *({0, self.scale} - {self._own[size]})]
        found = _best_of_size(
            self.pool, self.core, size, target, multipliers, self.scale, stop
        )
        if found is None:
            self.least[i] = target + 1
        else:
            self._close(i)
            self._offer(found, proven=True)
        self._drop()

    def _close(self, i: int) -> None:
        """Remove a size that cannot give a better group."""
        self.sizes, self.least = np.delete(self.sizes, i), np.delete(self.least, i)

    def _offer(self, group: Ints, proven: bool = False) -> None:
        """Keep a group that is better, or as good and proven to have the lowest ids."""
        if len(group) == 0:
            return
        total = int(self.pool.decode[group].sum())
        new, old = (total * len(self.best) ** 2, self.best_sum * len(group) ** 2)
        if (new, -len(group)) < (old, -len(self.best)) or (
            proven and new == old and len(group) == len(self.best)
        ):
            self.best, self.best_sum = group, total

    def _targets(self) -> Ints:
        """Largest sum of `o` with which a group of each size would be preferred.

        A size at least that of the best group may tie with it and win by size or ids.
        An answer is shorter than its peak, so no sum exceeds the budget.
        """
        k, total = len(self.best), self.best_sum
        wide = total * int(self.sizes[-1]) ** 2 < 2**62
        sizes = self.sizes if wide else self.sizes.astype(object)
        target = (total * sizes * sizes - (self.sizes < k)) // (k * k)
        most: Ints = np.minimum(target, self.pool.kv_budget).astype(np.int64)
        return most

    def _drop(self) -> None:
        """Remove the sizes whose bound exceeds their target."""
        if len(self.sizes):
            alive = self.least <= self._targets()
            self.sizes, self.least = self.sizes[alive], self.least[alive]


def _best_of_size(
    pool: Pool,
    core: Core,
    size: int,
    target: int,
    multipliers: list[int],
    scale: int,
    stop: Callable[[], bool],
) -> Ints | None:
    """Best group of one size with a sum of `o` up to `target`; None if none is."""
    for multiplier in multipliers:
        ranking = MultiplierRanking(core, multiplier, scale, size)
        shrunk = ranking.shrunk(np.array([size]), np.array([target]))
        if shrunk is None:
            return None
        core = shrunk
    count = size - len(core.fixed)
    if count == 0:
        return core.fixed
    core = core.undominated(count)
    by_id = np.argsort(pool.ids[core.free])
    decode, peak = core.decode[by_id], core.peak[by_id]
    rows = [
        FrontRow.of(
            decode, peak, count, target - core.spent, core.room, multiplier, scale
        )
        for multiplier in multipliers
    ]
    chosen = best_choice(decode, peak, count, core.room, rows, stop)
    if chosen is None:
        return None
    group: Ints = np.concatenate([core.fixed, core.free[by_id[chosen]]])
    return group


@kernel
def _fill(
    decode: Ints,
    peak: Ints,
    order: Ints,
    room: int,
    size: int,
    total: int,
    chosen: Ints,
) -> int:
    """Take the requests that fit, in order; return the number that gives the least `F`.

    `size` and `total` are the number and the sum of `o` of the fixed requests; `chosen`
    is filled with indices (modified in place).
    """
    best = found = 0
    best_f = total / (size * size) if size > 0 else np.inf
    for i in order:
        if peak[i] > room:
            continue
        room -= peak[i]
        total += decode[i]
        size += 1
        chosen[found] = i
        found += 1
        f = total / (size * size)
        if f <= best_f:
            best, best_f = found, f
    return best
