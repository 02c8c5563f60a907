"""Branch and bound on windows of starts: a bound, and optima of small instances.

Every schedule better than a known one lies in windows of starts (`lp.windows`). A node
of the search is a set of windows with its own prices, which prove a bound for them. The
node of least bound is split: a request starts at some step or before it, or after it.
So at any time every better schedule lies in an open node, and the least of their
bounds, or the known TEL if that is less, is a lower bound on TEL. When no node is left
the known schedule is optimal.

Prices of a node are its parent's after a few steps of the ascent of
`lp.window_ascent`; more nodes gain more than better prices. The search splits the
request whose random starts have the largest variance, weighted by its size and in
favour of early starts, at a step slightly after their mean. Early requests come first
because memory that is freed later is used by others: forcing a late request to wait
hardly raises the bound. In each node that is split the list by mean start is placed,
which often gives a better schedule.

Up to 24 requests, this closes the gap between the linear relaxation and the optimum in
seconds more often than not, and most of it in minutes; see
`benchmarks/results/strengthening.md`. If dozens of requests fit the cache together, it
does so for 40 requests and more.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from lp.dual import climb_once, or_answers, prices_are_quick
from lp.window_ascent import Spread, climb_windows
from lp.windows import (
    Windows,
    tighten,
    windowed_bound,
    windowed_prices,
    windows_below,
)
from sortedf.bounds import Bound, BoundOptions, Stage, register_bound
from sortedf.checker import check
from sortedf.methods import METHODS, Method, Outcome
from sortedf.methods.improve import search
from sortedf.options import Options
from sortedf.placement import place
from sortedf.schedule import Schedule
from sortedf.segments import horizon
from sortedf.stop import Rounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Floats = NDArray[np.float64]
    HalfFloats = NDArray[np.float32]

MAX_REQUESTS = 40
"""Requests up to which the method is practical and "auto" branches."""

LONG = 30_000
"""Horizon in steps up to which "auto" branches, per second of its time limit."""

BRANCHED_UP_TO = 100
"""Requests up to which nodes are split; above, a split hardly raises the bound."""

MAX_NODES = 1000
"""Nodes processed without a time limit: about a second."""

MAX_SECONDS = 10.0
"""Seconds of the search without a time limit: nodes are slow if requests take thousands
of steps, since each has a price for every step.
"""

FIRST_ROUNDS = 3
"""Rounds of the search for the initial schedule."""

MAX_OPEN_BYTES = 2**31
"""Memory for the prices of open nodes, above which the search stops."""

TEMPERATURE = 0.02
"""In mean answer lengths. A tenth of it gives better prices but worse splits."""

ITERATIONS = 6
"""Steps of the quasi-Newton method in a node."""

SOONER = 3
"""Power of the mean completion by which the weight of a split is divided."""

BEHIND = 0.3
"""Standard deviations after the mean start at which windows are split."""

WINDOWS = (2, 0)
"""Backfill windows with which a node's list is placed."""


def branching_is_quick(instance: Instance, time_limit: float | None) -> bool:
    """Whether branching often closes the gap within the time limit, or a second."""
    few = instance.num_requests <= MAX_REQUESTS
    seconds = max(time_limit or 0.0, 1.0)
    short = horizon(instance) <= LONG * seconds
    return few and short and prices_are_quick(instance, time_limit)


@register_bound(
    "branching",
    about="the dual bound, raised by branching on time windows",
    cost="seconds to minutes, for tens of requests",
    certified=False,
    quick=branching_is_quick,
    stage=Stage.SEARCH,
)
def branching(instance: Instance, options: BoundOptions) -> Bound:
    """Dual bound, raised by branching on windows; never below the dual bound.

    It has a certificate only if the root's prices alone prove the same bound.
    """
    proven, _ = _search(instance, options, Options(time_limit_s=options.rest_s))
    return proven


def branch_and_bound(instance: Instance, options: Options) -> Outcome:
    """Find an optimal schedule, or the best until the time limit or `MAX_NODES`.

    The initial schedule is that of `improve`, started from `options.start` if given.
    With more than `BRANCHED_UP_TO` requests no node is split.
    """
    proven, found = _search(instance, options.of_bound(), options)
    schedule = found.schedule
    return Outcome(
        schedule,
        found_by=found.found_by,
        backfill=found.backfill,
        complete=schedule.tel == proven.value,
        lower_bound=proven.value,
        interrupted=proven.interrupted,
    )


METHODS.register("branching")(
    Method(
        branch_and_bound,
        about="branch and bound on windows of starts, from improve's schedule",
        guarantee="optimal, if it ends within the time limit",
        cost=f"exponential; {MAX_NODES:,} nodes without a time limit",
        max_requests=MAX_REQUESTS,
        searches=True,
        by_segment=True,
    )
)


def _search(
    instance: Instance, options: BoundOptions, of_start: Options
) -> tuple[Bound, Outcome]:
    """Bound and schedule of one search; `of_start` are the options of its start."""
    ascent = climb_once(instance, options.with_share_of_time(0.2))
    climbed = ascent.certificate
    certificate = or_answers(instance, climbed)
    root = Bound(certificate.bound, certificate)
    if ascent.interrupted:
        options = options.within(0.0)
        of_start = of_start.within(0.0)
    few = 0 < instance.num_requests <= BRANCHED_UP_TO
    rounds = Rounds(FIRST_ROUNDS if few else 0)
    known = search(instance, replace(of_start, stop=rounds))
    tel = known.schedule.tel
    interrupted = ascent.interrupted or known.interrupted
    root = replace(root, schedule=known.schedule, interrupted=interrupted)
    if not few or tel == root.value or interrupted or options.reached(root.value):
        return root, known
    prices = climbed.price.astype(np.float64) * 0.5**climbed.scale_bits
    # Windows can force late starts, which give prices to steps after the makespan.
    makespan = known.schedule.makespan
    room = max(makespan + makespan // 4 - len(prices), 0)
    tree = Search(instance, tel, options, of_start.on_better)
    value = tree.run(np.concatenate([prices, np.zeros(room)]))
    if tree.schedule is not None:
        known = Outcome(tree.schedule, "branching", None)
    proven = root if value <= root.value else Bound(value)
    schedule, interrupted = known.schedule, tree.interrupted
    return replace(proven, schedule=schedule, interrupted=interrupted), known


@dataclass(order=True, slots=True)
class Node:
    """Windows with a proven bound; nodes are ordered by their bounds.

    Attributes
    ----------
    value : float
        Approximate `bound` before rounding up; used only for the order.
    bound : int
        Lower bound on the TEL of schedules in the windows better than the known one.
    prices : float32 array, shape (T,)
        Initial prices for the ascent in its children.
    """

    value: float
    bound: int
    windows: Windows = field(compare=False)
    prices: HalfFloats = field(compare=False)
    starts: Spread = field(compare=False)


class Search:
    """Best-first search over windows below a known TEL.

    Attributes
    ----------
    tel : int
        TEL of the best known schedule.
    schedule : Schedule or None
        The best schedule found, if it is better than the initial one.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    def __init__(
        self,
        instance: Instance,
        tel: int,
        options: BoundOptions,
        on_better: Callable[[int, int | None], None] | None = None,
    ) -> None:
        self.tel = tel
        self.schedule: Schedule | None = None
        self.interrupted = False
        self._proven = 0
        self._instance = instance
        self._options = options
        self._on_better = on_better
        self._mean_decode = float(instance.decode.mean())
        self._temperature = TEMPERATURE * self._mean_decode
        self._arrivals = float(instance.arrival.sum())
        self._began = time.perf_counter()

    def run(self, prices: Floats) -> int:
        """Return a lower bound on TEL, at most the known TEL.

        Ctrl-C ends the search with the bound proven before the current node.

        Parameters
        ----------
        prices : float64 array, shape (T,)
            Prices of a token of KV, near the optimal ones without windows.
        """
        try:
            self._explore(prices)
        except KeyboardInterrupt:
            self.interrupted = True
        return min(self._proven, self.tel)

    def _explore(self, prices: Floats) -> None:
        """Split nodes by bound; `_proven` is updated only between nodes."""
        everything = windows_below(self._instance, self.tel)
        open_nodes = self._nodes([everything], prices, 0)
        # The time of the first node may include compilation.
        self._began = time.perf_counter()
        seen, reported = 1, 0
        self._proven = self._least(open_nodes)
        while open_nodes and not self._stop(seen, open_nodes):
            node = heapq.heappop(open_nodes)
            if node.bound >= self.tel:  # a better schedule was found after its bound
                open_nodes.clear()
                break
            for child in self._split(node):
                heapq.heappush(open_nodes, child)
            seen += 2
            self._proven = self._least(open_nodes)
            if self._proven > reported:
                reported = self._proven
                self._options.report(reported, 0)
        self._proven = self._least(open_nodes)

    def _stop(self, seen: int, open_nodes: list[Node]) -> bool:
        if self._options.reached(self._least(open_nodes)):
            return True
        if len(open_nodes) * open_nodes[0].prices.nbytes > MAX_OPEN_BYTES:
            return True
        if self._options.time_limit_s is None:
            late = time.perf_counter() - self._began > MAX_SECONDS
            return late or seen >= MAX_NODES
        return self._options.out_of_time()

    def _least(self, open_nodes: list[Node]) -> int:
        return min(open_nodes[0].bound if open_nodes else self.tel, self.tel)

    def _split(self, node: Node) -> list[Node]:
        """Place the list of a node by mean start, then split it in two."""
        self._place(node.starts.mean)
        width = node.windows.last - node.windows.first
        if not width.any():
            self._take(Schedule(self._instance, node.windows.first))
            return []
        mean, variance = node.starts.mean, np.maximum(node.starts.variance, 0)
        completion = mean + self._mean_decode
        weight = variance * self._instance.peak / completion**SOONER
        i = int(np.argmax(np.where(width > 0, weight, -1.0)))
        low, high = int(node.windows.first[i]), int(node.windows.last[i])
        split = mean[i] + BEHIND * variance[i] ** 0.5
        step = min(max(int(split), low), high - 1)
        halves = node.windows.split(i, step)
        return self._nodes(list(halves), node.prices, node.bound)

    def _place(self, mean_start: Floats) -> None:
        """Place the requests by mean start."""
        order = np.argsort(mean_start, kind="stable")
        for window in WINDOWS:
            self._take(place(self._instance, order, backfill=window))

    def _take(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better and feasible, including caps and blocks."""
        if schedule.tel < self.tel and check(self._instance, schedule).feasible:
            self.schedule, self.tel = schedule, schedule.tel
            if self._on_better is not None:
                self._on_better(schedule.tel, None)

    def _nodes(
        self, parts: list[Windows], prices: Floats | HalfFloats, bound: int
    ) -> list[Node]:
        """Bound each part; leave out parts that contain no better schedule."""
        nodes = []
        for part in parts:
            windows = tighten(self._instance, part)
            if windows is None:
                continue
            node = self._bounded(windows, prices, bound)
            if node is not None:
                nodes.append(node)
        return nodes

    def _bounded(
        self, windows: Windows, prices: Floats | HalfFloats, bound: int
    ) -> Node | None:
        better, starts = self._ascend(windows, prices.astype(np.float64))
        rounded = windowed_prices(self._instance, better, self.tel)
        value, cut = windowed_bound(self._instance, windows, rounded, self.tel)
        left = tighten(self._instance, cut)
        if left is None:
            return None
        soonest = left.first + self._instance.decode - self._instance.arrival
        bound = max(bound, -(-value >> rounded.scale_bits), sum(soonest.tolist()))
        if bound >= self.tel:
            return None
        about = max(float(bound - 1), value * 0.5**rounded.scale_bits)
        return Node(about, bound, left, better.astype(np.float32), starts)

    def _ascend(self, windows: Windows, prices: Floats) -> tuple[Floats, Spread]:
        """Improve prices for a few iterations, or until the bound reaches the TEL."""
        better, starts = climb_windows(
            self._instance,
            windows,
            prices,
            temperature=self._temperature,
            iterations=ITERATIONS,
            enough=self.tel + self._arrivals,
        )
        # If no schedule lies in the windows the ascent is unbounded; D is concave and
        # positive at 0, so scaling towards 0 leaves it large.
        largest = float(np.max(better, initial=0))
        if not np.isfinite(largest):
            return prices, starts
        if largest > self.tel:
            better *= self.tel / largest
        return better, starts
