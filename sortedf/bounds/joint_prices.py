"""The bound by prices where the requests of a prefix pay for it together.

A split of a prefix' price (`sortedf.bounds.split_prices`) says in advance what each
request pays in each step. It is weak where requests could as well run at other times:
each then runs where others pay. Values (`sortedf.joint_values`) need no split: for each
time in which the requests of a leaf may hold it, their values must not be above their
costs there and the prefix' price together. So the bound is at least as close where
stretches are short against answers, and by far where few requests share long prefixes.

The sum of the values, less what they are too high, is climbed by its gradient in the
prices, in the part that own tokens pay, and in the values themselves. Nodes that are no
request's leaf stay split as they were.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.bounds.charged import own_parts
from sortedf.bounds.joint_kernels import joint_excess, window_costs
from sortedf.bounds.split_prices import POINTS, split_prices, time_spent
from sortedf.bounds.table import Bound, Stage, register_bound
from sortedf.errors import CertificateError
from sortedf.split_certificate import SplitCertificate, value_excess

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance
    from sortedf.shared_prefixes import SharedPrefixes

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

SPLIT_SHARE = 0.2
"""Share of the time limit for the split that the climb begins with."""

NEAR = 0.9
"""Part of the split's bound below which a first point is too far off to climb from.

Stretches are then long against answers, and splits are climbed instead.
"""

ROUNDS = 200
LEAST_ROUNDS = 10

RATES = (0.1, 0.006)
"""First step widths of logarithms of prices and logits, and, as a share of the horizon,
of values.
"""

WIDTHS = (0.004, 0.0004)
"""First and last width of a window's neighbourhood, as shares of the horizon."""


@register_bound(
    "joint-values",
    about="prices of KV by step, paid for a prefix by all that hold it together",
    cost="O(n) for each round; anytime with a limit",
    stage=Stage.CLIMB,
    shared=True,
)
def joint_values(instance: Instance, options: BoundOptions) -> Bound:
    """Climb split prices first, then from there, if it is near; the best of all."""
    shared = instance.prefixes
    if shared is None or not instance.num_requests:
        return own_parts(instance, options)
    split = split_prices(instance, options.with_share_of_time(SPLIT_SHARE))
    if split.interrupted or options.reached(split.value) or options.out_of_time():
        return split
    assert isinstance(split.certificate, SplitCertificate)
    climb = JointClimb(instance, shared, split.certificate)
    climb.step(0.0)
    if climb.best < NEAR * split.value:
        longer = split_prices(instance, options)
        return max(longer, split, key=lambda found: found.value)
    rounds = max(LEAST_ROUNDS, round(ROUNDS * options.effort))
    interrupted = False
    try:
        for done in range(rounds):
            if options.out_of_time():
                break
            climb.step(max(done / rounds, time_spent(options)))
            options.report(max(split.value, int(climb.best)), 0)
    except KeyboardInterrupt:
        interrupted = True
    joint = climb.joint_certificate() if climb.best > split.value else None
    if joint is None or joint.bound <= split.value:
        return replace(split, interrupted=interrupted)
    return Bound(joint.bound, joint, interrupted=interrupted)


class JointClimb:
    """The best prices and values so far, and the point of the climb.

    A point has for each stretch the logarithm of the price, for each leaf the logit of
    the part that own tokens pay, and for each request its value.
    """

    def __init__(
        self, instance: Instance, shared: SharedPrefixes, split: SplitCertificate
    ) -> None:
        self._instance, self._shared, self._split = instance, shared, split
        block = instance.engine.block_size
        self._own = instance.prefill - shared.request_blocks * block
        self._cut: Ints = np.concatenate([[0], split.end])
        horizon = int(self._cut[-1])
        self._grid = np.unique(np.linspace(0, horizon, POINTS).round().astype(np.int64))
        count = len(split.end)
        price = split.price / 2.0**split.scale_bits
        floor = max(float(price.max()), 1e-9) * 1e-6
        price = np.maximum(price, floor)
        longest = int(instance.decode.max())
        self._wide = min(count + 1, longest // int(np.diff(self._cut).min()) + 3)
        self._begin_groups(shared)
        leaf = np.unique(shared.leaf[shared.leaf >= 0])
        self._leaf = leaf
        self._tokens = (shared.blocks * block).astype(np.float64)
        self._room = (instance.usable_kv - shared.depth * block).astype(np.float64)
        scale = 2.0**split.scale_bits
        # What is paid at other nodes stays the same part of the price.
        own = split.own.reshape(-1, count) / scale / price
        self._own_part = own
        self._inner = ~np.isin(split.node, leaf)
        self._pays_part = split.pays.reshape(-1, count) / scale / price
        self._flat_part = np.zeros((instance.num_requests, count))
        np.add.at(
            self._flat_part, split.member[self._inner], self._pays_part[self._inner]
        )
        part = own[leaf] * (self._room / self._tokens)[leaf][:, None]
        part = np.clip(part, 1e-4, 1 - 1e-4)
        self._point = [
            np.log(price), np.log(part / (1 - part)), self._first_values(price, own)
        ]  # fmt: skip
        self._mean = [np.zeros_like(x) for x in self._point]
        self._square = [np.zeros_like(x) for x in self._point]
        self._steps = 0
        self.best = -math.inf
        self._kept = [x.copy() for x in self._point]

    def _begin_groups(self, shared: SharedPrefixes) -> None:
        """Sort the requests of each leaf by their answers."""
        decode = self._instance.decode
        order = np.lexsort((np.arange(len(decode)), decode))
        leaves, self._row = np.unique(shared.leaf, return_inverse=True)
        self._groups: list[tuple[int, Ints]] = []
        for leaf in leaves.tolist():
            ids = order[shared.leaf[order] == leaf]
            if leaf >= 0:
                self._groups.append((leaf, ids))
            else:  # they hold nothing together
                self._groups += [(leaf, ids[k : k + 1]) for k in range(len(ids))]
        self._above = np.zeros((len(leaves), len(shared)))
        for row, leaf in enumerate(leaves.tolist()):
            while leaf >= 0:
                self._above[row, leaf] = 1.0
                leaf = int(shared.parent[leaf])

    def _first_values(self, price: Floats, own: Floats) -> Floats:
        """Least costs with all prices split, which no values need to be below."""
        instance, split = self._instance, self._split
        flat = np.zeros_like(self._flat_part)
        np.add.at(flat, split.member, self._pays_part)
        flat *= price
        token = price * (1 + self._above @ own)
        least = np.empty((len(self._cut), self._wide))
        start = np.empty(least.shape, dtype=np.int64)
        value = np.empty(instance.num_requests)
        for i in range(len(value)):
            window_costs(
                self._own[i], instance.decode[i], instance.arrival[i], self._cut,
                token[self._row[i]], flat[i], self._grid, least, start,
            )  # fmt: skip
            value[i] = least.min()
        return value

    def _prices(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return prices, what own tokens pay, the part of it, and the rest by leaf."""
        price = np.exp(self._point[0])
        part = 1 / (1 + np.exp(-self._point[1]))
        own = self._own_part * price
        tokens = self._tokens[self._leaf][:, None]
        own[self._leaf] = price * part * tokens / self._room[self._leaf][:, None]
        return price, own, part, price * (1 - part) * tokens

    def step(self, done: float) -> None:
        """Evaluate the point, keep it if it is the best, and climb.

        Parameters
        ----------
        done : float
            Part of the climb that is done, from 0 to 1.
        """
        instance = self._instance
        price, own, part, rest = self._prices()
        value = self._point[2]
        token = price + self._above @ own
        flat = self._flat_part * price
        n, count = flat.shape
        horizon = float(self._cut[-1])
        first, last = WIDTHS
        width = first * (last / first) ** done * horizon
        weight = np.zeros(n)
        running, held = np.zeros((2, n, count))
        used = np.zeros((len(self._leaf), count))
        nothing = np.zeros(count)
        lowered = value.copy()
        for leaf, ids in self._groups:
            k = int(np.searchsorted(self._leaf, leaf)) if leaf >= 0 else -1
            over = joint_excess(
                ids, self._own, instance.decode, instance.arrival, self._cut,
                token[self._row[ids[0]]], flat, rest[k] if leaf >= 0 else nothing,
                self._grid, self._wide, value, width, weight, running, held,
                used[k] if leaf >= 0 else nothing.copy(),
            )  # fmt: skip
            lowered[ids] -= over
        length = np.diff(self._cut)
        budget = instance.usable_kv
        total = float(lowered.sum()) - exact_sum(instance.arrival)
        total -= budget * float(price @ length)
        if total > self.best:
            self.best = total
            self._kept = [self._point[0], self._point[1], lowered]
        below = np.zeros((len(self._above), count))
        np.add.at(below, self._row, held)
        by_node = self._above.T @ below
        by_price = (token * below).sum(axis=0) + (flat * running).sum(axis=0)
        by_price += (rest * used).sum(axis=0) - budget * price * length
        tokens = price * self._tokens[self._leaf][:, None]
        room = self._room[self._leaf][:, None]
        by_part = part * (1 - part) * tokens * (by_node[self._leaf] / room - used)
        rates = (RATES[0], RATES[0], RATES[1] * horizon)
        self._climb([by_price, by_part, 1 - weight], rates, 1 - 0.95 * done)

    def _climb(
        self, gradient: list[Floats], rates: tuple[float, ...], slower: float
    ) -> None:
        """Go up by Adam (Kingma and Ba, 2015)."""
        self._steps += 1
        slow, fast = 1 - 0.98**self._steps, 1 - 0.9**self._steps
        for k, new in enumerate(gradient):
            self._mean[k] += 0.1 * (new - self._mean[k])
            self._square[k] += 0.02 * (new * new - self._square[k])
            scale = np.sqrt(self._square[k] / slow) + 1e-12
            move = rates[k] * slower * (self._mean[k] / fast) / scale
            self._point[k] = self._point[k] + move

    def joint_certificate(self) -> SplitCertificate | None:
        """Round the best point to integers, values lowered to be valid; None if not.

        The scale is that of the split.
        """
        instance, split = self._instance, self._split
        self._point = self._kept
        scale = 2.0**split.scale_bits
        price, own, _, _ = self._prices()
        pays = np.where(self._inner[:, None], self._pays_part * price, 0.0)
        whole = np.ceil(price * scale).astype(np.int64)
        # Down by more than rounding errors, so that no node is paid too much.
        by_tokens, by_request = (
            np.floor(part * (scale * (1 - 1e-9))).astype(np.int64)
            for part in (own, pays)
        )
        value = np.floor(np.maximum(self._kept[2], 0) * scale).astype(np.int64)
        claim = SplitCertificate(
            split.instance_hash, 0, split.scale_bits, split.end, whole,
            by_tokens.ravel(), split.node, split.member, by_request.ravel(), value,
        )  # fmt: skip
        try:
            value = value - value_excess(instance, claim)
        except CertificateError:  # too large for the scale
            return None
        if value.min() < 0:
            return None
        length = np.diff(split.end, prepend=0).tolist()
        total = exact_sum(value) - (exact_sum(instance.arrival) << split.scale_bits)
        total -= instance.usable_kv * sum(
            p * d for p, d in zip(whole.tolist(), length, strict=True)
        )
        return replace(claim, bound=-(-total >> split.scale_bits), value=value)
