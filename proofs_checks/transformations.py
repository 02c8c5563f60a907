"""The steps between Sorted-F's schedule and any other one, as functions.

With groups `X_1, ..., X_m` in Sorted-F's order, `U_j` the requests that are in none of
`X_1, ..., X_{j-1}`, `R_j = |U_j|`, and `F_j = F(X_j) = (sum of o over X_j) / |X_j|^2`:

* `separated`: the groups one after another, each started together;
* `packed`: requests into groups that fit, longest answers first;
* `prices`: `P_i = R_j F_j` for the requests of `X_j`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from proofs_checks.tiny import checked
from sortedf import Instance, place
from sortedf.groups import Exact
from sortedf.groups.table import groups
from sortedf.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortedf import Schedule

RULES = ("svf", "mc-sf", "fcfs", "lpt", "total-size")
"""List rules whose schedules stand in for "any schedule" if no optimum is known."""


def groups_of(instance: Instance) -> list[list[int]]:
    """Sorted-F's groups in order, each by answer length."""
    options = Options()
    return [ids.tolist() for ids in groups(instance, Exact(options), options)]


def sorted_f(instance: Instance, found: Sequence[Sequence[int]]) -> Schedule:
    """Sorted-F's schedule: its groups as one list, placed as the papers do."""
    order = [i for group in found for i in group]
    return checked(instance, place(instance, order).start)


def separated(instance: Instance, found: Sequence[Sequence[int]]) -> Schedule:
    """Start each group together, when all of the group before are done."""
    start = [0] * instance.num_requests
    now = 0
    for group in found:
        for i in group:
            start[i] = now
        now += max(int(instance.decode[i]) for i in group)
    return checked(instance, start)


def packed(instance: Instance, ids: Sequence[int]) -> list[list[int]]:
    """Put requests into groups, longest answers first; a new one if one does not fit.

    The next-fit decreasing height rule of strip packing.
    """
    found: list[list[int]] = []
    room = 0
    for i in sorted(ids, key=lambda i: (-int(instance.decode[i]), i)):
        peak = int(instance.peak[i])
        if not found or peak > room:
            found.append([])
            room = instance.kv_budget
        found[-1].append(i)
        room -= peak
    return found


def f_of(instance: Instance, group: Sequence[int]) -> Fraction:
    """`F(X) = sum of o / |X|^2`."""
    return Fraction(sum(instance.decode[list(group)].tolist()), len(group) ** 2)


def prices(instance: Instance, found: Sequence[Sequence[int]]) -> list[Fraction]:
    """`P_i = R_j F_j`, in the order of the list."""
    left = instance.num_requests
    price = []
    for group in found:
        price += [left * f_of(instance, group)] * len(group)
        left -= len(group)
    return price


def mixed(seed: int, n: int) -> Instance:
    """Draw a backlog of short chats and long documents, some long in both."""
    rng = np.random.default_rng([seed, n])
    long = rng.random(n) < 0.3
    prefill = np.where(long, rng.integers(40, 200, n), rng.integers(1, 20, n))
    decode = np.where(
        rng.random(n) < 0.3, rng.integers(20, 90, n), rng.integers(1, 20, n)
    )
    budget = int((prefill + decode).max() * rng.choice([1, 2, 4]))
    return Instance(prefill, decode, budget)
