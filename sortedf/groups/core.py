"""Lagrangian bounds on the groups of every size, and what they decide.

Weigh the sum of answers with `D - a` and the peaks with `a`, for an integer multiplier
`0 <= a <= D` (the multiplier of the budget is then `mu = a / (D - a)`). With
`c_i = (D - a) o_i + a w_i`, where `w` is the peak, every group of size `k` that fits
the budget satisfies

    (D - a) (sum of o)  >=  (sum of c) - a M  >=  (sum of the k smallest c) - a M,

so one sort bounds the sum of answers for all sizes at once. To hold a request that is
not among the k smallest raises the right-hand side by at least `c_i - c_(k)`, to leave
out one that is by `c_(k+1) - c_i`: where that exceeds the sum we would accept, the
request is decided. All of it is integer arithmetic: nothing is ever decided wrongly.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.groups.pool import Pool

    Ints = NDArray[np.int64]

MAX_SCALE_BITS = 30
"""Finest multipliers, `D = 2**30`; the bound is off its best by `M / D` at most."""


def scale_for(budget: int, size: int) -> int:
    """Largest `D`, a power of two, with sums of `size + 2` values of `c` below 2**60.

    As `o < w <= M`, each `c` is at most `D M`.
    """
    bits = 60 - (budget * (size + 2)).bit_length()
    return 1 << max(0, min(MAX_SCALE_BITS, bits))


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """What is decided about a group, and the requests that are not.

    Attributes
    ----------
    fixed : int64 array
        Positions in the pool of requests that are surely in the group.
    free : int64 array, shape (m,)
        Positions of those that may be, ascending.
    decode, peak : int64 arrays, shape (m,)
        `o` and `w` of the free ones, in tokens.
    room : int
        Tokens of the budget that the fixed ones leave.
    spent : int
        Sum of `o` over the fixed ones.
    """

    fixed: Ints
    free: Ints
    decode: Ints
    peak: Ints
    room: int
    spent: int

    @classmethod
    def whole(cls, pool: Pool) -> Core:
        """Nothing decided yet."""
        nobody = np.empty(0, dtype=np.int64)
        everybody = np.arange(len(pool.ids))
        return cls(nobody, everybody, pool.decode, pool.peak, pool.kv_budget, 0)

    def decided(self, inside: Ints, free: Ints) -> Core:
        """Fix the indices `inside`, keep the indices `free`, leave out the others."""
        free = np.sort(free)
        return Core(
            np.concatenate([self.fixed, self.free[inside]]),
            self.free[free],
            self.decode[free],
            self.peak[free],
            self.room - int(self.peak[inside].sum()),
            self.spent + int(self.decode[inside].sum()),
        )

    def undominated(self, size: int) -> Core:
        """Leave out whom `size` or more free ones dominate, for groups of that many.

        One with a shorter answer and no higher peak is better in any group, and so is
        one with an equal answer, no higher peak and a lower id. So the best group
        holds with a request all that dominate it; in the order of the pool these are
        the earlier ones with no higher peak.
        """
        keep = np.flatnonzero(undominated(self.peak, size))
        return self.decided(np.empty(0, dtype=np.int64), keep)


class MultiplierRanking:
    """The free requests of a core in order of `c`, for one multiplier.

    Only as many as sizes up to `largest` need are in order: the first `largest + 1`.

    Attributes
    ----------
    order : int64 array, shape (m,)
        Indices into the core, smallest `c` first.
    """

    def __init__(self, core: Core, multiplier: int, scale: int, largest: int) -> None:
        self._core = core
        self._multiplier = multiplier
        self._per_answer = scale - multiplier
        cost = self._per_answer * core.decode + multiplier * core.peak
        self.order = np.argsort(cost, kind="stable")
        self._cost = cost[self.order]
        most = max(0, largest - len(core.fixed)) + 1
        self._sum = np.concatenate([[0], np.cumsum(self._cost[:most])])

    def least_sums(self, sizes: Ints) -> Ints:
        """Proven lower bounds on the sum of `o` over a group, for each size."""
        core = self._core
        total = self._sum[sizes - len(core.fixed)] - self._multiplier * core.room
        return core.spent - (-total // self._per_answer)

    def shrunk(self, sizes: Ints, targets: Ints) -> Core | None:
        """Core of every group of one of the sizes with a sum of `o` up to its target.

        None if there is no such group.
        """
        core = self._core
        count = sizes - len(core.fixed)
        gap = self._per_answer * (targets - core.spent) + self._multiplier * core.room
        gap -= self._sum[count]
        count, gap = count[gap >= 0], gap[gap >= 0]
        if len(count) == 0:
            return None
        most = len(self._cost)
        # Nothing is taken before the first or left out after the last.
        some, rest = count > 0, count < most
        last_in = self._cost[count[some] - 1] + gap[some]
        first_out = self._cost[count[rest]] - gap[rest]
        end = np.searchsorted(self._cost, last_in, side="right").max(initial=0)
        begin = np.searchsorted(self._cost, first_out).min(initial=most)
        shrunk = core.decided(self.order[:begin], self.order[begin:end])
        if shrunk.room < 0 or shrunk.spent > targets.max():
            return None  # what is fixed is too much already
        return shrunk


def best_multiplier(core: Core, size: int, scale: int) -> int | None:
    """Multiplier whose bound for groups of `size` is highest; None if none fits."""
    count = size - len(core.fixed)
    multiplier = _best_multiplier(core.decode, core.peak, count, core.room, scale)
    return multiplier if multiplier >= 0 else None


@kernel
def _smallest(value: Ints, count: int) -> int:
    """Return the `count`-th smallest entry; `value` is put into another order.

    Hoare's selection. `np.partition` does the same, but compiling it takes numba five
    seconds, a quarter of all that the first search of a user has to wait for.
    """
    low, high, place = 0, len(value) - 1, count - 1
    while low < high:
        pivot = value[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while value[i] < pivot:
                i += 1
            while value[j] > pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return int(value[place])


@kernel
def _cheapest(
    decode: Ints, peak: Ints, count: int, multiplier: int, scale: int
) -> tuple[int, int]:
    """Return the sums of `o` and of peaks of the `count >= 1` cheapest requests."""
    cost = (scale - multiplier) * decode + multiplier * peak
    last = _smallest(cost.copy(), count)
    answers = memory = ties = 0
    for i in range(len(cost)):
        if cost[i] < last:
            answers += decode[i]
            memory += peak[i]
            count -= 1
    for i in range(len(cost)):
        if cost[i] == last and ties < count:
            answers += decode[i]
            memory += peak[i]
            ties += 1
    return answers, memory


@kernel
def _best_multiplier(
    decode: Ints, peak: Ints, count: int, room: int, scale: int
) -> int:
    """Multiplier of the highest bound on `count` requests; -1 if no so many fit.

    The bound is concave and piecewise linear in `mu`. Each step goes to where the lines
    of the two best sets so far meet: a cheap one that does not fit, and one that fits.
    """
    if count == 0:
        return 0
    low, high = 0, scale
    cheap, cheap_memory = _cheapest(decode, peak, count, low, scale)
    dear, dear_memory = _cheapest(decode, peak, count, high, scale)
    if dear_memory > room:
        return -1
    if cheap_memory <= room:
        return 0
    while True:
        rise, fall = dear - cheap, cheap_memory - dear_memory
        multiplier = scale * rise // (rise + fall)
        if multiplier <= low or multiplier >= high:
            return low
        answers, memory = _cheapest(decode, peak, count, multiplier, scale)
        if (answers == cheap and memory == cheap_memory) or (
            answers == dear and memory == dear_memory
        ):
            return multiplier
        if memory > room:
            low, cheap, cheap_memory = multiplier, answers, memory
        else:
            high, dear, dear_memory = multiplier, answers, memory


def undominated(weight: Ints, size: int) -> NDArray[np.bool_]:
    """Which entries have fewer than `size` earlier ones that are no larger."""
    if not 0 < size < len(weight):
        return np.ones(len(weight), dtype=np.bool_)
    return _undominated(weight, size)


@kernel
def _undominated(weight: Ints, size: int) -> NDArray[np.bool_]:
    keep = np.ones(len(weight), dtype=np.bool_)
    least = [-weight[k] for k in range(size)]  # a heap of the smallest, largest on top
    heapq.heapify(least)
    for i in range(size, len(weight)):
        if weight[i] < -least[0]:
            heapq.heapreplace(least, -weight[i])
        else:
            keep[i] = False
    return keep
