"""Claim: finding the least TEL of a backlog is strongly NP-hard (Sorted-F's paper).

The paper reduces from restricted 3-Partition; this is a reduction of our own, and it
needs answers of one token only.

*Reduction.* Given `3 m` integers `a_j` with `B/4 < a_j < B/2` and sum `m B`: is there a
partition into `m` triples of sum `B`? Take a request with `s_j = a_j`, `o_j = 1` for
each number, and `M = B + 3`. A request holds `a_j + 1` tokens in the one step that it
runs in. Four of them hold more than `4 B/4 + 4 > M`, so a step completes three at most
and

    TEL  >=  3 (1 + 2 + ... + m)  =  3 m (m + 1) / 2,

with equality if and only if each of the steps `1, ..., m` completes exactly three
requests. Their prompts then have a sum of at most `M - 3 = B` in each step, and as all
together have `m B`, of exactly `B`: the steps are the triples. Conversely triples of
sum `B` are a schedule with that TEL. Numbers stay as large as they were, so hardness is
strong: unless P = NP there is no pseudo-polynomial algorithm either. QED.

Proved: the reduction, above. Checked here: all restricted instances with `m = 2` and
`B <= 16` and some with `m = 3`, by exact search in both directions, and the triples are
read off the schedule.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import pytest

from proofs_checks import tiny
from sortedf import Instance


def reduced(numbers: tuple[int, ...], target: int) -> Instance:
    """Build the backlog of an instance of restricted 3-Partition."""
    assert all(4 * a > target > 2 * a for a in numbers)
    assert 3 * sum(numbers) == len(numbers) * target
    return Instance(numbers, [1] * len(numbers), target + 3)


def threshold(m: int) -> int:
    """TEL that is reached exactly by the yes instances."""
    return 3 * m * (m + 1) // 2


def has_triples(numbers: tuple[int, ...], target: int) -> bool:
    """Decide 3-Partition by trying all triples of the first number."""
    if not numbers:
        return True
    first, rest = numbers[0], numbers[1:]
    for i, j in combinations(range(len(rest)), 2):
        if first + rest[i] + rest[j] == target:
            left = tuple(a for k, a in enumerate(rest) if k not in (i, j))
            if has_triples(left, target):
                return True
    return False


def triples_of(instance: Instance, start: list[int]) -> list[list[int]]:
    """Translate a schedule back: the numbers that run in each step."""
    steps = range(max(start) + 1)
    numbers = instance.prefill.tolist()
    return [[a for a, p in zip(numbers, start, strict=True) if p == t] for t in steps]


def decide(numbers: tuple[int, ...], target: int) -> bool:
    """Decide 3-Partition by scheduling, and check the certificate."""
    instance = reduced(numbers, target)
    best = threshold(len(numbers) // 3)
    assert tiny.optimum(instance, limit=best) is None
    found = tiny.optimum(instance, limit=best + 1)
    if found is None:
        return False
    assert found.tel == best
    triples = triples_of(instance, found.start.tolist())
    assert all(len(triple) == 3 and sum(triple) == target for triple in triples)
    assert sorted(a for triple in triples for a in triple) == sorted(numbers)
    return True


def restricted(target: int) -> list[tuple[int, ...]]:
    """All instances of six numbers."""
    allowed = range(target // 4 + 1, (target + 1) // 2)
    return [
        numbers
        for numbers in combinations_with_replacement(allowed, 6)
        if sum(numbers) == 2 * target
    ]


@pytest.mark.parametrize("target", [3, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16])
def test_the_threshold_decides_every_pair_of_triples(target: int) -> None:
    """Yes instances reach the threshold, no instances do not."""
    answers = [
        (decide(numbers, target), has_triples(numbers, target))
        for numbers in restricted(target)
    ]
    assert answers
    assert all(ours == theirs for ours, theirs in answers)


def test_there_are_no_instances_among_them() -> None:
    """The check above is not empty on either side."""
    answers = {has_triples(numbers, 16) for numbers in restricted(16)}
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("numbers", "target", "answer"),
    [
        ((6, 6, 8, 6, 7, 7, 6, 6, 8), 20, True),
        ((9, 9, 9, 6, 6, 6, 6, 6, 6), 21, True),
        ((6, 6, 6, 6, 6, 9, 9, 9, 9), 22, False),
    ],
)
def test_three_triples(numbers: tuple[int, ...], target: int, answer: bool) -> None:
    """Nine requests, both answers."""
    assert has_triples(numbers, target) == answer
    assert decide(numbers, target) == answer
