"""Backlogs that grow with one number `k`, each hard for one list rule."""

from __future__ import annotations

from fractions import Fraction

from proofs_checks.tiny import checked
from sortedf import Instance, Schedule, bound, place, solve


def fcfs_trap(k: int) -> tuple[Instance, list[int]]:
    """One request that fills the budget for `k` steps, then `k^2` that need one step.

    The first holds `M - k + 1, ..., M` tokens, each other one `k + 1` in its only step:
    more than what the first leaves until it completes. All the others fit together.
    """
    small = k * k
    budget = small * (k + 1)
    prefill = [budget - k] + [k] * small
    decode = [k] + [1] * small
    return Instance(prefill, decode, budget), [*range(1, small + 1), 0]


def shortest_answer_trap(k: int) -> tuple[Instance, list[int]]:
    """`k` requests that fill the budget for one step, and `k^2` small ones of two.

    The answers of the large ones are shorter by one token. All small ones fit together.
    """
    small = k * k
    budget = 3 * small
    prefill = [budget - 1] * k + [1] * small
    decode = [1] * k + [2] * small
    return Instance(prefill, decode, budget), [*range(k, k + small), *range(k)]


def total_size_trap(k: int) -> tuple[Instance, list[int]]:
    """One request of `k^2` steps, and `k` that need the whole budget for one step.

    The long one is smaller in total by two tokens: a prompt of 1 and `k^2` steps.
    """
    length = k * k
    budget = length + 3
    prefill = [1] + [budget - 1] * k
    decode = [length] + [1] * k
    return Instance(prefill, decode, budget), [*range(1, k + 1), 0]


def smallest_volume_trap(k: int) -> tuple[Instance, list[int]]:
    """One long request, and `k` of the same volume that fill the budget for one step.

    The long one has `k^2` steps and a prompt of 1; ties go to the lower id, and so to
    it. Peaks are as large as the budget, where SVF has no guarantee.
    """
    length = k * k
    budget = length + length * (length + 1) // 2
    prefill = [1] + [budget - 1] * k
    decode = [length] + [1] * k
    return Instance(prefill, decode, budget), [*range(1, k + 1), 0]


def straggler_trap(k: int) -> tuple[Instance, list[int]]:
    """`k` requests of `k` steps, one of `2 k`, and 1.41 `k` that fill the budget once.

    The first `k + 1` have `F = 1 - 1 / (k + 1)^2`, just below the 1 of the others.
    """
    full = round(2**0.5 * k)
    budget = k * (k + 1) + 2 * k + 1
    prefill = [1] * (k + 1) + [budget - 1] * full
    decode = [k] * k + [2 * k] + [1] * full
    return Instance(prefill, decode, budget), [
        *range(k + 1, k + 1 + full),
        *range(k + 1),
    ]


def method_tel(instance: Instance, method: str, backfill: int = 0) -> int:
    """TEL of a method's schedule, by the checker."""
    result = solve(instance, method, backfill=backfill, bound="none")
    return checked(instance, result.schedule.start).tel


def ratio_to_schedule(
    instance: Instance, good_order: list[int], method: str, backfill: int = 0
) -> Fraction:
    """TEL of a method over that of a known schedule: its ratio is at least this."""
    good: Schedule = checked(instance, place(instance, good_order).start)
    return Fraction(method_tel(instance, method, backfill), good.tel)


def ratio_to_bound(instance: Instance, method: str) -> Fraction:
    """TEL of a method over the fluid bound: its ratio is at most this."""
    return Fraction(method_tel(instance, method), bound(instance, "fluid").value)
