"""The search of "auto" where prompts share prefixes: lists, then moves of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.methods.subtrees import HELD, subtree_order
from sortedf.methods.table import RULES, Outcome
from sortedf.placement import SharedPlacing
from sortedf.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Ints = NDArray[np.int64]

LISTED = ("svf", "mc-sf", "fcfs", "depth-first", "longest-prefix", "k-lpm")
"""List rules that are tried beside `subtree-volume`."""

WINDOWS = (20, 5, 100, 0, 400)
"""Backfill windows tried if none is given."""

MOVES = 400
"""Moves tried without a time limit."""

FAR = 6.0
"""Mean distance of a move, in runs of requests of one tree."""


def search_shared(instance: Instance, options: Options) -> Outcome:
    """Place lists with several windows, and move runs of requests in the best one.

    After Ctrl-C the result is the best schedule so far, if there is any.
    """
    search = _Search(instance, options)
    interrupted = False
    try:
        complete = search.place_lists() and search.move()
    except KeyboardInterrupt:
        if search.tel is None:
            raise
        complete, interrupted = False, True
    schedule = Schedule(instance, search.start)
    window = None if search.moved else search.window
    return Outcome(schedule, search.name, window, complete, interrupted=interrupted)


class _Search:
    """The best list so far."""

    def __init__(self, instance: Instance, options: Options) -> None:
        assert instance.prefixes is not None
        self._instance, self._options = instance, options
        self._placing = SharedPlacing(instance)
        root = np.append(instance.prefixes.root, -1)
        leaf = instance.prefixes.leaf
        # A request that shares nothing is a tree of its own.
        alone = len(root) + np.arange(len(leaf))
        self._tree: Ints = np.where(leaf >= 0, root[leaf], alone)
        least = exact_sum(instance.decode)
        self._least = max(least, options.lower_bound or 0)
        self.tel: int | None = None
        self.start: Ints = np.zeros(0, dtype=np.int64)
        self.order: Ints = np.zeros(0, dtype=np.int64)
        self.window, self.name, self.moved = 0, "", False

    def place_lists(self) -> bool:
        """Place every list with every window; return whether there was time for it."""
        backfill = self._options.backfill
        windows = WINDOWS if backfill is None else (backfill,)
        for name, order in self._lists():
            for window in windows:
                self._try(order, window, name)
                if self.tel == self._least:
                    return True
                if self._options.out_of_time():
                    return False
        return True

    def move(self) -> bool:
        """Move runs until the time or the number of moves is over."""
        if self._instance.num_requests < 2:
            return True
        rng = np.random.default_rng(self._options.seed)
        limited = self._options.time_limit_s is not None
        tried = 0
        while self.tel != self._least and (limited or tried < MOVES):
            if self._options.out_of_time():
                return False
            tried += 1
            order = moved_run(self.order, self._tree, rng)
            if self._try(order, self.window, "moves"):
                self.moved = True
        return True

    def _lists(self) -> Iterator[tuple[str, Ints]]:
        for held in HELD:
            yield "subtree-volume", subtree_order(self._instance, held)
        for name in LISTED:
            yield name, RULES[name](self._instance, self._options)

    def _try(self, order: Ints, window: int, name: str) -> bool:
        """Place an order; keep it and return true if it is the best so far."""
        if self.tel is None:
            start, tel = self._placing.place(order, window)
        else:
            start, tel = self._placing.place(order, window, self.tel - 1)
            if tel >= self.tel:
                return False
        self.tel, self.start, self.order = tel, start, order
        self.window, self.name = window, name
        if self._options.on_better is not None:
            self._options.on_better(tel, self._options.lower_bound)
        return True


def moved_run(order: Ints, tree: Ints, rng: np.random.Generator) -> Ints:
    """Move requests that stand in a row in an order.

    Half of the moves take a run of one tree, or the end of it, to another place between
    runs; or next to the next run of the same tree, if there is one. The others take a
    few requests in a row to any place nearby.

    Parameters
    ----------
    order : int64 array, shape (n,)
        At least 2 requests.
    tree : int64 array, shape (n,)
        Tree of each request.
    """
    n = len(order)
    own = tree[order]
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(own)) + 1, [n]])
    shift = 1 + int(rng.exponential(FAR))
    later = bool(rng.random() < 0.5)
    if rng.random() < 0.5 and len(cuts) > 2:
        run = int(rng.integers(len(cuts) - 1))
        begin, end = int(cuts[run]), int(cuts[run + 1])
        if end - begin > 1 and rng.random() < 0.5:
            begin = int(rng.integers(begin + 1, end))
        to = int(cuts[min(max(run + (shift if later else -shift), 0), len(cuts) - 1)])
        same = np.flatnonzero(own[cuts[:-1]] == own[begin])
        others = same[same > run] if later else same[same < run]
        if len(others) and rng.random() < 0.5:
            other = int(others[0] if later else others[-1])
            to = int(cuts[other] if later else cuts[other + 1])
    else:
        size = min(int(rng.geometric(0.4)), n - 1)
        begin = int(rng.integers(0, n - size + 1))
        end = begin + size
        far = 1 + int(rng.exponential(0.03 * n))
        to = begin - far if not later else end + far
    taken = order[begin:end]
    rest = np.delete(order, slice(begin, end))
    if to > begin:
        to -= end - begin
    return np.insert(rest, min(max(to, 0), len(rest)), taken)
