"""Lagrangian bounds on the groups of every size, and the requests they fix.

Weigh the sum of answers with `D - a` and the peaks with `a`, for an integer multiplier
`0 <= a <= D` (the multiplier of the budget is then `mu = a / (D - a)`). With
`c_i = (D - a) o_i + a w_i`, where `w` is the peak, every group of size `k` that fits
the budget satisfies

    (D - a) (sum of o)  >=  (sum of c) - a M  >=  (sum of the k smallest c) - a M,

so one sort bounds the sum of answers for all sizes at once. Including a request that is
not among the k smallest raises the right-hand side by at least `c_i - c_(k)`, excluding
one that is by `c_(k+1) - c_i`: if the result exceeds the largest acceptable sum, the
request is fixed. All of it is integer arithmetic, so no request is fixed wrongly.
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
"""Finest multipliers, `D = 2**30`; the bound is within `M / D` of the best one."""


def scale_for(budget: int, size: int) -> int:
    """Largest `D`, a power of two, with sums of `size + 2` values of `c` below 2**60.

    As `o < w <= M`, each `c` is at most `D M`.
    """
    bits = 60 - (budget * (size + 2)).bit_length()
    return 1 << max(0, min(MAX_SCALE_BITS, bits))


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """A partly fixed group: requests surely in it, and requests still undecided.

    Attributes
    ----------
    fixed : int64 array
        Positions in the pool of the requests fixed in the group.
    free : int64 array, shape (m,)
        Positions of the undecided requests, ascending.
    decode, peak : int64 arrays, shape (m,)
        `o` and `w` of the free requests, in tokens.
    room : int
        Tokens of the budget left beside the fixed requests.
    spent : int
        Sum of `o` over the fixed requests.
    """

    fixed: Ints
    free: Ints
    decode: Ints
    peak: Ints
    room: int
    spent: int

    @classmethod
    def whole(cls, pool: Pool) -> Core:
        """Core with every request of the pool free."""
        fixed = np.empty(0, dtype=np.int64)
        free = np.arange(len(pool.ids))
        return cls(fixed, free, pool.decode, pool.peak, pool.kv_budget, 0)

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
        """Leave out requests that `size` or more free ones dominate.

        A request with a shorter answer and no higher peak is better in any group, and
        so is one with an equal answer, no higher peak and a lower id. So the best group
        contains, with each request, all that dominate it; in the order of the pool
        these are the earlier ones with no higher peak.
        """
        keep = np.flatnonzero(undominated(self.peak, size))
        return self.decided(np.empty(0, dtype=np.int64), keep)


class MultiplierRanking:
    """The free requests of a core in order of `c`, for one multiplier.

    Sums are kept for group sizes up to `largest` only.

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
        """Core that contains every group of size `sizes[k]` with sum `<= targets[k]`.

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
        # A group of size 0 includes no request; one of all requests excludes none.
        some, rest = count > 0, count < most
        last_in = self._cost[count[some] - 1] + gap[some]
        first_out = self._cost[count[rest]] - gap[rest]
        end = np.searchsorted(self._cost, last_in, side="right").max(initial=0)
        begin = np.searchsorted(self._cost, first_out).min(initial=most)
        shrunk = core.decided(self.order[:begin], self.order[begin:end])
        if shrunk.room < 0 or shrunk.spent > targets.max():
            return None  # the fixed requests alone exceed the budget or every target
        return shrunk


def best_multiplier(core: Core, size: int, scale: int) -> int | None:
    """Multiplier whose bound for groups of `size` is highest; None if none fits."""
    count = size - len(core.fixed)
    multiplier = _best_multiplier(core.decode, core.peak, count, core.room, scale)
    return multiplier if multiplier >= 0 else None


@kernel
def _smallest(value: Ints, count: int) -> int:
    """Return the `count`-th smallest entry; `value` is put into another order.

    Hoare's selection. `np.partition` does the same, but numba needs five seconds to
    compile it, a quarter of the compilation before a user's first search.
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
    """Multiplier of the highest bound on `count` requests; -1 if no `count` fit.

    The bound is concave and piecewise linear in `mu`. Each iteration moves to the
    intersection of the lines of two sets: the last that did not fit, the last that did.
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
