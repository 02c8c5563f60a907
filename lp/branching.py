"""The branching bound: windows of starts, split until the bound is high enough.

For small instances. Every schedule better than a known one lies in windows of starts
(`lp.windows`). A node of the search is a set of windows with prices of its own that
prove a bound there. The node of least bound is split: a request starts at some step or
sooner, or later. So at any time every better schedule lies in an open node, and the
least of their bounds, or the known TEL if that is less, is a lower bound on TEL. When
no node is left the known schedule is optimal.

Prices of a node are its parent's after a few steps of the ascent of `lp.dual`; more
nodes pay better than better prices. The search splits the request whose random starts
spread most, at their mean.

Among chats with a few documents, up to about 20 requests, this closes most of what
lies between the linear relaxation and the optimum in seconds. Where most requests are
documents it closed a quarter in 30 s: there are too many ways to exchange them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lp.dual import climb
from lp.windows import (
    Windows,
    soft_minima,
    tighten,
    windowed_bound,
    windowed_prices,
    windows_below,
)
from sortedf.arrays import exact_sum
from sortedf.bounds import BOUNDS, Proof
from sortedf.methods.best_list import best_list
from sortedf.registry import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance
    from sortedf.options import Options

    Floats = NDArray[np.float64]

MAX_REQUESTS = 40
"""Above, this is the dual bound: splitting one request hardly lifts the bound."""

MAX_NODES = 400
"""Nodes that are looked at without a time limit."""

TEMPERATURE = 0.003
"""In mean answer lengths."""

ITERATIONS = 8
"""Steps of the quasi-Newton method in a node."""


@register(BOUNDS, "bound", "branching")
def branching(instance: Instance, options: Options) -> Proof:
    """Dual bound, lifted by branching on windows; never below the dual bound.

    With a certificate only where the root's prices alone prove as much.
    """
    ascent = climb(instance, options)
    root = max(ascent.certificate.bound, exact_sum(instance.decode))
    if not 0 < instance.num_requests <= MAX_REQUESTS:
        return Proof(root, ascent.certificate)
    schedule = best_list(instance, options).schedule
    certificate, tel = ascent.certificate, schedule.tel
    prices = certificate.price.astype(np.float64) * 0.5**certificate.scale_bits
    # Room behind: with windows that force requests to be late, later steps have prices.
    room = max(schedule.makespan + schedule.makespan // 4 - len(prices), 0)
    prices = np.concatenate([prices, np.zeros(room)])
    value = max(root, Search(instance, tel, options).run(prices))
    return Proof(value, certificate if value == certificate.bound else None)


@dataclass(order=True, slots=True)
class Node:
    """Windows with a proven bound; the least bound comes first.

    Attributes
    ----------
    value : float
        About `bound` before it was rounded up; it only decides the order.
    bound : int
        No schedule of the windows that is better than the known one is below it.
    """

    value: float
    bound: int
    windows: Windows = field(compare=False)
    prices: Floats = field(compare=False)
    mean: Floats = field(compare=False)
    variance: Floats = field(compare=False)


class Search:
    """Best-first search over windows below a known TEL."""

    def __init__(self, instance: Instance, tel: int, options: Options) -> None:
        self.instance = instance
        self.tel = tel
        self.options = options
        self._temperature = TEMPERATURE * float(instance.decode.mean())

    def run(self, prices: Floats) -> int:
        """Return a lower bound on TEL, the known TEL at most.

        Parameters
        ----------
        prices : float64 array, shape (T,)
            Good prices of a token of KV without windows.
        """
        everything = windows_below(self.instance, self.tel)
        open_nodes = self._nodes([everything], prices, 0)
        seen = 1
        while open_nodes and not self._stop(seen):
            node = heapq.heappop(open_nodes)
            i = int(np.argmax(node.variance))
            low, high = int(node.windows.first[i]), int(node.windows.last[i])
            if low == high:  # nothing spreads: split the widest window instead
                i = int(np.argmax(node.windows.last - node.windows.first))
                low, high = int(node.windows.first[i]), int(node.windows.last[i])
            if low == high:  # one schedule, better than the known one
                heapq.heappush(open_nodes, node)
                break
            step = min(max(int(node.mean[i]), low), high - 1)
            halves = node.windows.split(i, step)
            for child in self._nodes(list(halves), node.prices, node.bound):
                heapq.heappush(open_nodes, child)
            seen += len(halves)
            self.options.report(min(self._least(open_nodes), self.tel), 0)
        return min(self._least(open_nodes), self.tel)

    def _stop(self, seen: int) -> bool:
        if self.options.time_limit_s is None:
            return seen >= MAX_NODES
        return self.options.out_of_time()

    def _least(self, open_nodes: list[Node]) -> int:
        return min((node.bound for node in open_nodes), default=self.tel)

    def _nodes(self, parts: list[Windows], prices: Floats, bound: int) -> list[Node]:
        """Bound each part; leave out those without a better schedule."""
        nodes = []
        for part in parts:
            windows = tighten(self.instance, part)
            if windows is None:
                continue
            node = self._bounded(windows, prices, bound)
            if node is not None:
                nodes.append(node)
        return nodes

    def _bounded(self, windows: Windows, prices: Floats, bound: int) -> Node | None:
        better, mean, variance = self._ascend(windows, prices)
        rounded = windowed_prices(self.instance, better, self.tel)
        value, cut = windowed_bound(self.instance, windows, rounded, self.tel)
        left = tighten(self.instance, cut)
        if left is None:
            return None
        soonest = left.first + self.instance.decode - self.instance.arrival
        bound = max(bound, -(-value >> rounded.scale_bits), sum(soonest.tolist()))
        if bound >= self.tel:
            return None
        about = max(float(bound - 1), value * 0.5**rounded.scale_bits)
        return Node(about, bound, left, better, mean, variance)

    def _ascend(
        self, windows: Windows, prices: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Climb a little; return prices, and mean and variance of the starts."""
        # Not lp.quasi_newton: in a node without a schedule the prices must grow without
        # end within a few iterations, and scipy's line search reaches further.
        from scipy.optimize import minimize  # slow to import, and only needed here

        instance = self.instance
        steps = len(prices)
        held = np.empty(steps)
        mean, variance = np.empty((2, instance.num_requests))
        unit = max(float(prices.max(initial=0)), 1e-12)
        budget = instance.usable_kv

        def loss(scaled: Floats) -> tuple[float, Floats]:
            value = soft_minima(
                instance.prefill, instance.decode, windows.first, windows.last,
                scaled * unit, self._temperature, held, mean, variance,
            )  # fmt: skip
            value -= budget * unit * float(scaled.sum())
            share = 1 / instance.num_requests
            return -value * share, (budget - held) * (unit * share)

        result = minimize(
            loss,
            prices / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * steps,
            options={"maxiter": ITERATIONS, "maxcor": 15},
        )
        # Without a schedule in the windows nothing stops the ascent; D is concave and
        # positive at 0, so going back towards 0 leaves it large.
        largest = float(np.max(result.x, initial=0)) * unit
        if not np.isfinite(largest):
            result.x = prices / unit
        elif largest > self.tel:
            result.x *= self.tel / largest
        loss(result.x)
        return result.x * unit, mean, variance
