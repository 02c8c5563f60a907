"""The bound by prices where prompts share prefixes: prices and splits are searched.

For any prices of KV, and any split of the price of each shared prefix among the
requests below it and their own tokens, `sortedf.split_certificate` has a lower bound.
Prices and splits are constant on stretches of steps. The bound is concave in them, so
it is climbed by its gradient: each request runs at its cheapest start, or near it,
which gives the use of memory in each stretch; where more is used than there is, the
price rises, and the request that uses a prefix most pays more of it.

Prices begin as those of a schedule of the subtrees' order: with `N` requests left in a
step, a token is worth `N / M` there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.bounds.charged import own_parts
from sortedf.bounds.split_kernels import least_costs, shares_of_starts
from sortedf.bounds.table import Bound, Stage, always, register_bound
from sortedf.certificate import instance_hash
from sortedf.methods.subtrees import subtree_order
from sortedf.placement import place
from sortedf.split_certificate import SplitCertificate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance
    from sortedf.shared_prefixes import SharedPrefixes

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

STRETCHES = 100
POINTS = 500
"""Starts that are tried while climbing; the bound itself is over all of them."""

ROUNDS = 400
LEAST_ROUNDS = 60
"""Rounds of the climb, by the effort, where there is no time limit."""

RATE = 0.1
"""First step width, of the logarithm of prices and of splits."""

WIDTHS = (0.004, 0.0005)
"""First and last width of a start's neighbourhood, as shares of the horizon."""

UNDECIDED = -2.0
"""First logit of the part of a prefix that own tokens pay."""


@register_bound(
    "split-prices",
    about="prices of KV by step, those of shared prefixes split among requests",
    cost="O(n) for each round; anytime with a limit",
    quick=always,
    stage=Stage.CLIMB,
    shared=True,
)
def split_prices(instance: Instance, options: BoundOptions) -> Bound:
    """Climb to good prices and splits, and evaluate them exactly."""
    if instance.prefixes is None or not instance.num_requests:
        return own_parts(instance, options)
    climb = _Climb(instance, instance.prefixes)
    rounds = max(LEAST_ROUNDS, round(ROUNDS * options.effort))
    interrupted = False
    try:
        for done in range(rounds):
            climb.step(max(done / rounds, time_spent(options)))
            options.report(int(climb.best), 0)
            if options.out_of_time() or options.reached(int(climb.best)):
                break
    except KeyboardInterrupt:
        interrupted = True
    certificate = climb.certificate()
    if certificate.bound < exact_sum(instance.decode):  # by starts off the grid
        certificate = _Climb(instance, instance.prefixes).certificate()
    return Bound(certificate.bound, certificate, interrupted=interrupted)


def time_spent(options: BoundOptions) -> float:
    """Part of the time limit that has passed; 0 without one."""
    if not options.time_limit_s:
        return 0.0
    return 1 - options.seconds_left() / options.time_limit_s


@dataclass(frozen=True, slots=True)
class _Prices:
    """Prices and splits by stretch.

    Attributes
    ----------
    price : float64 array, shape (K,)
        `lambda`.
    own : float64 array, shape (nodes, K)
        `z`: what each own token below a node pays for it.
    pays : float64 array, shape (pairs, K)
        `x`: what each request below a node pays for it.
    """

    price: Floats
    own: Floats
    pays: Floats


class _Climb:
    """The best prices so far, and the point of the climb.

    A point has for each stretch the logarithm of the price, for each node the logit of
    the part that own tokens pay, and for each pair of a node and a request below it a
    number whose softmax is the request's part of the rest.
    """

    def __init__(self, instance: Instance, shared: SharedPrefixes) -> None:
        block = instance.engine.block_size
        self._instance, self._shared = instance, shared
        self._own = instance.prefill - shared.request_blocks * block
        self._tokens = (shared.blocks * block).astype(np.float64)
        self._room = (instance.usable_kv - shared.depth * block).astype(np.float64)
        members = shared.members()
        self._member: Ints = np.concatenate(members)
        sizes = [len(ids) for ids in members]
        self._node: Ints = np.repeat(np.arange(len(shared)), sizes)
        self._first = np.cumsum([0, *sizes[:-1]])
        leaves, self._row = np.unique(shared.leaf, return_inverse=True)
        self._above = np.zeros((len(leaves), len(shared)))
        for row, leaf in enumerate(leaves.tolist()):
            while leaf >= 0:
                self._above[row, leaf] = 1.0
                leaf = int(shared.parent[leaf])
        self._begin()

    def _begin(self) -> None:
        """Set the stretches, and the prices of a schedule of the subtrees' order."""
        instance, n = self._instance, self._instance.num_requests
        schedule = place(instance, subtree_order(instance, 2.0), backfill=20)
        horizon = schedule.makespan
        count = min(STRETCHES, horizon)
        self.cut: Ints = np.linspace(0, horizon, count + 1).round().astype(np.int64)
        self._grid = np.unique(np.linspace(0, horizon, POINTS).round().astype(np.int64))
        middle = (self.cut[1:] + self.cut[:-1]) / 2
        arrived = np.searchsorted(np.sort(instance.arrival), middle)
        left = arrived - np.searchsorted(np.sort(schedule.completion), middle)
        price = np.maximum(left, 0.01) / instance.usable_kv
        self._point = [
            np.log(price),
            np.full((len(self._shared), count), UNDECIDED),
            np.zeros((len(self._node), count)),
        ]
        self._mean = [np.zeros_like(part) for part in self._point]
        self._square = [np.zeros_like(part) for part in self._point]
        self._steps = 0
        self._running, self._held = np.zeros((2, n, count))
        # With all prices 0 each request takes its answer's steps.
        self.best = float(exact_sum(instance.decode))
        self._kept = _Prices(*map(np.zeros_like, self._point))

    def _prices(self) -> _Prices:
        """Prices and splits of the point."""
        price = np.exp(self._point[0])
        part = self._part()
        own = price * part * (self._tokens / self._room)[:, None]
        rest = price * (1 - part) * self._tokens[:, None]
        return _Prices(price, own, rest[self._node] * self._weight())

    def _part(self) -> Floats:
        """Part of each node's price that own tokens pay."""
        return np.asarray(1 / (1 + np.exp(-self._point[1])))

    def _weight(self) -> Floats:
        """Part of the rest that each request pays; they add up to 1 by node."""
        logit = self._point[2]
        largest = np.maximum.reduceat(logit, self._first, axis=0)
        weight = np.exp(logit - largest[self._node])
        return np.asarray(weight / self._by_node(weight)[self._node])

    def _by_node(self, pairs: Floats) -> Floats:
        return np.asarray(np.add.reduceat(pairs, self._first, axis=0))

    def step(self, part: float) -> None:
        """Evaluate the point, keep its prices if they are the best, and climb.

        Parameters
        ----------
        part : float
            Part of the climb that is done, from 0 to 1.
        """
        instance, prices = self._instance, self._prices()
        factor = self._above @ prices.own
        flat = np.zeros_like(self._running)
        np.add.at(flat, self._member, prices.pays)
        first, last = WIDTHS
        width = first * (last / first) ** part * float(self.cut[-1])
        total = shares_of_starts(
            self._own, instance.decode, instance.arrival, self.cut, self._row,
            prices.price + factor, flat, self._grid, width, self._running, self._held,
        )  # fmt: skip
        length = np.diff(self.cut)
        budget = instance.usable_kv
        value = total - exact_sum(instance.arrival)
        value -= budget * float(prices.price @ length)
        if value > self.best:
            self.best, self._kept = value, prices
        self._climb(self._gradient(prices, length), RATE * (1 - 0.9 * part))

    def _gradient(self, prices: _Prices, length: Ints) -> list[Floats]:
        """Differentiate the bound by the three parts of the point."""
        below = np.zeros((len(self._above), len(length)))  # own tokens, by leaf
        np.add.at(below, self._row, self._held)
        by_node = self._above.T @ below
        used = self._running[self._member] * prices.pays
        paid = self._by_node(used)
        tokens = prices.own * by_node
        price = prices.price * (below.sum(axis=0) - self._instance.usable_kv * length)
        price = price + tokens.sum(axis=0) + paid.sum(axis=0)
        part = self._part()
        by_part = tokens * (1 - part) - paid * part
        return [price, by_part, used - self._weight() * paid[self._node]]

    def _climb(self, gradient: list[Floats], rate: float) -> None:
        """Go up by Adam (Kingma and Ba, 2015)."""
        self._steps += 1
        slow, fast = 1 - 0.98**self._steps, 1 - 0.9**self._steps
        for k, new in enumerate(gradient):
            self._mean[k] += 0.1 * (new - self._mean[k])
            self._square[k] += 0.02 * (new * new - self._square[k])
            scale = np.sqrt(self._square[k] / slow) + 1e-12
            self._point[k] = self._point[k] + rate * (self._mean[k] / fast) / scale

    def certificate(self) -> SplitCertificate:
        """Round the best prices to integers, and evaluate them exactly."""
        instance, kept = self._instance, self._kept
        bits = self._scale_bits()
        scale = 2.0**bits
        price = np.ceil(kept.price * scale).astype(np.int64)
        # Down by more than rounding errors, so that no node is paid too much.
        own, pays = (
            np.floor(part * (scale * (1 - 1e-9))).astype(np.int64)
            for part in (kept.own, kept.pays)
        )
        flat = np.zeros(self._running.shape, dtype=np.int64)
        np.add.at(flat, self._member, pays)
        token = price + self._above.astype(np.int64) @ own
        least = least_costs(
            self._own, instance.decode, instance.arrival, instance.engine.block_size,
            self.cut, self._row, token, flat, bits,
        )  # fmt: skip
        prices = sum(
            p * d
            for p, d in zip(price.tolist(), np.diff(self.cut).tolist(), strict=True)
        )
        total = exact_sum(least) - (exact_sum(instance.arrival) << bits)
        value = -(-(total - instance.usable_kv * prices) >> bits)
        return SplitCertificate(
            instance_hash(instance), value, bits, self.cut[1:], price, own.ravel(),
            self._node, self._member, pays.ravel(),
        )  # fmt: skip

    def _scale_bits(self) -> int:
        """Fraction bits with which the cost of each request fits 64 bits."""
        instance, kept = self._instance, self._kept
        flat = np.zeros(self._running.shape)
        np.add.at(flat, self._member, kept.pays)
        token = (kept.price + self._above @ kept.own).max(axis=1, initial=0)[self._row]
        tokens = self._own + instance.decode + instance.engine.block_size
        most = float((instance.decode * (token * tokens + flat.max(axis=1))).max())
        last = max(int(self.cut[-1]), int(instance.arrival.max()))
        most += last + int(instance.decode.max()) + 1
        return max(0, min(30, 60 - math.ceil(math.log2(most))))
