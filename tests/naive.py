"""Slow, obvious twins of everything fast: loops over steps and over all subsets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortedf import Instance


def kv_used(instance: Instance, start: dict[int, int], step: int) -> int:
    """KV held in one step, straight from the convention."""
    used = 0
    held: set[int] = set()
    shared = instance.prefixes
    for i, p in start.items():
        if p < step <= p + int(instance.decode[i]):
            used += instance.engine.round_up(int(instance.prefill[i]) + step - p)
            if shared is not None:
                path = shared.path(i)
                used -= sum(int(shared.blocks[k]) for k in path) * _block(instance)
                held.update(path)
    if shared is not None:
        used += sum(int(shared.blocks[k]) for k in held) * _block(instance)
    return used


def _block(instance: Instance) -> int:
    return instance.engine.block_size


def is_feasible(instance: Instance, start: dict[int, int]) -> bool:
    """Whether every rule holds in every single step."""
    engine = instance.engine
    budget = instance.kv_budget // engine.block_size * engine.block_size
    ends = [p + int(instance.decode[i]) for i, p in start.items()]
    for i, p in start.items():
        if p < int(instance.arrival[i]):
            return False
    for step in range(1, max(ends, default=0) + 1):
        if kv_used(instance, start, step) > budget:
            return False
        running = [i for i, p in start.items() if p < step <= p + instance.decode[i]]
        tokens = sum(
            int(instance.prefill[i]) if start[i] + 1 == step else 1 for i in running
        )
        if len(running) > engine.seqs_cap or tokens > engine.tokens_cap:
            return False
    return True


def place(instance: Instance, order: list[int], backfill: int = 0) -> list[int]:
    """Placement by its rule, step by step, trying everything in each step."""
    start: dict[int, int] = {}
    step = 0
    while len(start) < instance.num_requests:
        misfits = 0
        for i in order:
            if i in start or instance.arrival[i] > step:
                continue
            if is_feasible(instance, {**start, i: step}):
                start[i] = step
                continue
            misfits += 1
            if misfits > backfill:
                break
        step += 1
    return [start[i] for i in range(instance.num_requests)]


def best_group(instance: Instance, ids: list[int]) -> list[int]:
    """The group of smallest F among all subsets; ties as the design settles them."""
    best: tuple[Fraction, int, tuple[int, ...]] | None = None
    for size in range(1, len(ids) + 1):
        for group in combinations(sorted(ids), size):
            if sum(int(instance.peak[i]) for i in group) > instance.usable_kv:
                continue
            f = Fraction(sum(int(instance.decode[i]) for i in group), size**2)
            key = (f, -size, group)
            if best is None or key < best:
                best = key
    assert best is not None
    return list(best[2])


def least_sums(instance: Instance) -> dict[int, int]:
    """Least sum of answers over the feasible groups of each size that has one."""
    least: dict[int, int] = {}
    for size in range(1, instance.num_requests + 1):
        sums = [
            sum(int(instance.decode[i]) for i in group)
            for group in combinations(range(instance.num_requests), size)
            if sum(int(instance.peak[i]) for i in group) <= instance.usable_kv
        ]
        if sums:
            least[size] = min(sums)
    return least


def can_start_together(instance: Instance, ids: tuple[int, ...]) -> bool:
    """Whether the budget holds in every step if all of `ids` start in step 0."""
    start = dict.fromkeys(ids, 0)
    longest = max(int(instance.decode[i]) for i in ids)
    steps = range(1, longest + 1)
    return all(kv_used(instance, start, t) <= instance.usable_kv for t in steps)


def best_co_start_f(instance: Instance) -> Fraction:
    """Smallest F of any group that can start together."""
    n = instance.num_requests
    return min(
        Fraction(sum(int(instance.decode[i]) for i in group), size**2)
        for size in range(1, n + 1)
        for group in combinations(range(n), size)
        if can_start_together(instance, group)
    )


def sorted_f_order(instance: Instance) -> list[int]:
    """Sorted-F by brute force over all groups."""
    rest = list(range(instance.num_requests))
    order: list[int] = []
    while rest:
        group = best_group(instance, rest)
        order += sorted(group, key=lambda i: (int(instance.decode[i]), i))
        rest = [i for i in rest if i not in group]
    return order


def best_tel(instance: Instance) -> int:
    """Least TEL of any schedule, by trying every start step of every request.

    Depth first over requests; a branch ends where its TEL, with no other wait,
    is no better than the best so far. First fits in some order would not do: a
    request that starts later holds less KV in each step, so waiting can pay.
    """
    n = instance.num_requests
    decode, arrival = instance.decode.tolist(), instance.arrival.tolist()
    first = place(instance, list(range(n)))
    best: int = sum(first) + sum(decode) - sum(arrival)

    def extend(start: dict[int, int], tel: int) -> None:
        nonlocal best
        i = len(start)
        if i == n:
            best = min(best, tel)
            return
        rest = sum(decode[i + 1 :])
        step = arrival[i]
        while tel + step + decode[i] - arrival[i] + rest < best:
            if is_feasible(instance, {**start, i: step}):
                extend({**start, i: step}, tel + step + decode[i] - arrival[i])
            step += 1

    extend({}, 0)
    return best
