"""Beam search over partial schedules, from the first step on.

Time is divided into levels. In each level every partial schedule is extended in several
ways up to the end of the level, and the best extensions are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.improve.beam_kernels import BeamRows, Scratch, expand_rows
from sortedf.improve.guide_kernels import DUE, FAR, PREFILL, Guide
from sortedf.improve.price_kernels import ANSWERS
from sortedf.improve.random_kernels import RANDOM_MODULUS
from sortedf.improve.trail import Trail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEW_CHILDREN, MANY_CHILDREN = 2, 5
"""Extensions of each partial schedule: few in a narrow beam, to keep it diverse, and
many in a wide one.
"""

WIDE_BEAM = 10
"""Width from which a beam counts as wide."""

STARTS_PER_LEVEL = 5
"""Requests due in a level."""

NARROW = 3
"""Fewest waiting requests considered for a start."""

LOOK_AT = 1.2
"""Most waiting requests considered for a start, as a multiple of the square root of
`n`: with more requests, preferring one that fits well to the next one due costs less.
"""

MAX_WIDTH = 1000
"""Largest width; beyond it other seeds gain more than a wider beam."""

MAX_BYTES = 2**28
"""Memory for the partial schedules of a beam."""

DIGITS = 6
"""Partial schedules whose values agree to so many decimals count as equal."""


class Beam:
    """A beam search that can be stopped between levels.

    Parameters
    ----------
    guide : Guide
    width : int
        Partial schedules kept in each level, at least 1.
    seed : int
    """

    def __init__(self, guide: Guide, width: int, seed: int) -> None:
        self._guide = guide
        self._width = width
        n = len(guide.request)
        self._wide = min(n, max(2 * NARROW, int(LOOK_AT * n**0.5)))
        self._narrow = min(NARROW, self._wide)
        running = most_running(guide)
        self._rows = _rows(width, running, self._wide)
        self._spare = _rows(width, running, self._wide)
        self._work = _scratch(n, running, self._wide)
        self._rng = np.random.default_rng(seed)
        self._trail = Trail(n)
        self._levels = levels(guide)
        self._level = 0
        self._num_rows = 1
        self._put_root()

    def _put_root(self) -> None:
        rows = self._rows
        rows.clock[0] = rows.running[0] = 0
        rows.cost[0] = 0.0
        rows.waiting[0] = np.arange(self._wide)
        rows.num_waiting[0] = rows.next_rank[0] = self._wide

    @property
    def done(self) -> bool:
        """Whether every kept schedule is complete."""
        return not self._rows.num_waiting[: self._num_rows].any()

    @property
    def share_left(self) -> float:
        """Remaining levels as a share of all."""
        return 1 - self._level / len(self._levels)

    @property
    def cost(self) -> float:
        """Excess of the best schedule over the bound: see `sortedf.improve`."""
        return float(self._rows.cost[: self._num_rows].min())

    def narrow(self) -> None:
        """Reduce the width to 1, so that the remaining levels take little time."""
        self._width = 1

    def advance(self) -> None:
        """Process one level."""
        children = children_of(self._width)
        parent = np.repeat(np.arange(self._num_rows), children)
        seeds = self._rng.integers(1, RANDOM_MODULUS, len(parent))
        value, *_ = self._expand(parent, seeds, 0, 0)
        best = np.unique(np.round(value, DIGITS), return_index=True)[1][: self._width]
        self._keep(parent[best], seeds[best])
        self._level += 1

    def _keep(self, parent: Ints, seeds: Ints) -> None:
        """Repeat the best extensions and store them in the spare rows."""
        size = 8 * len(parent) * STARTS_PER_LEVEL
        while True:
            _, kept, rank, start, first = self._expand(parent, seeds, len(parent), size)
            if kept == len(parent):
                break
            size *= 4
        self._trail.add(parent, rank[: first[-1]], start[: first[-1]], first)
        self._rows, self._spare = self._spare, self._rows
        self._num_rows = len(parent)

    def _expand(
        self, parent: Ints, seeds: Ints, keep: int, size: int
    ) -> tuple[Floats, int, Ints, Ints, Ints]:
        """Extend rows; store the first `keep` if they start at most `size` requests."""
        value = np.empty(len(parent))
        rank, start = np.empty((2, size), dtype=np.int64)
        first = np.empty(keep + 1, dtype=np.int64)
        kept = expand_rows(
            self._guide, self._rows, parent, seeds, int(self._levels[self._level]),
            self._narrow, self._wide, self._work, value, self._spare, rank, start,
            first,
        )  # fmt: skip
        return value, kept, rank, start, first

    def starts(self, *, earliest_end: bool) -> Ints:
        """Start steps by rank of the schedule of least cost or of least makespan."""
        rows = self._rows
        key: Ints | Floats = rows.clock if earliest_end else rows.cost
        return self._trail.starts(int(np.argmin(key[: self._num_rows])))


def children_of(width: int) -> int:
    """Extensions of each partial schedule in a beam of this width."""
    if width == 1:
        return 1
    return MANY_CHILDREN if width >= WIDE_BEAM else FEW_CHILDREN


def widest(guide: Guide) -> int:
    """Largest width of a beam within `MAX_WIDTH` and `MAX_BYTES`."""
    wide = int(LOOK_AT * len(guide.request) ** 0.5)
    row = 8 * (2 * most_running(guide) + wide)
    return max(1, min(MAX_WIDTH, MAX_BYTES // (2 * row)))


def levels(guide: Guide) -> Ints:
    """Return the ends of the levels, each with `STARTS_PER_LEVEL` more requests due."""
    due = guide.request[STARTS_PER_LEVEL::STARTS_PER_LEVEL, DUE]
    return np.append(np.unique(due + 1), FAR)


def most_running(guide: Guide) -> int:
    """Upper limit on requests running at once: each holds at least `s + 1` tokens."""
    held = np.cumsum(
        np.sort(-(-(guide.request[:, PREFILL] + 1) // guide.block) * guide.block)
    )
    fitting = int(np.searchsorted(held, guide.budget, side="right"))
    return min(fitting, guide.max_seqs) + 1


def _rows(width: int, running: int, waiting: int) -> BeamRows:
    def ints(*shape: int) -> Ints:
        return np.empty(shape, dtype=np.int64)

    return BeamRows(
        clock=ints(width),
        running=ints(width),
        num_waiting=ints(width),
        next_rank=ints(width),
        cost=np.empty(width),
        end=ints(width, running),
        used=ints(width, running),
        waiting=ints(width, waiting),
    )


def _scratch(n: int, running: int, waiting: int) -> Scratch:
    end, used, room = np.empty((3, running), dtype=np.int64)
    own, fitting = np.empty((2, waiting), dtype=np.int64)
    rank, start = np.empty((2, n), dtype=np.int64)
    answers = np.empty(ANSWERS, dtype=np.int64)
    return Scratch(
        end, used, own, room, answers, fitting, np.empty(waiting), rank, start
    )
