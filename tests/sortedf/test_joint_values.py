"""Values of requests with one leaf: never above what they cost together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortedf.certificate import proven_bound
from sortedf.errors import CertificateError
from sortedf.joint_values import MOST_PAID, excess
from tests import naive
from tests.sortedf.test_split_certificate import random_split
from tests.strategies import shared_instances


def drawn(rng):
    """Draw answers, arrivals, costs of starts, ends of stretches and rests."""
    ends = np.cumsum(rng.integers(1, 4, rng.integers(1, 5)))
    rest = rng.integers(0, 9, len(ends))
    size = int(rng.integers(1, 4))
    answer = np.sort(rng.integers(1, 6, size))
    first = rng.integers(0, ends[-1] + 1, size)
    costs = [rng.integers(0, 20, ends[-1] - a + 1) for a in first.tolist()]
    return answer.tolist(), first.tolist(), costs, ends, rest


def least_together(answer, first, costs, ends, rest):
    """Least sum of costs and the rest over the union of runs, by all starts."""
    by_step = np.repeat(rest, np.diff(ends, prepend=0)).tolist()
    starts = [range(a, a + len(cost)) for a, cost in zip(first, costs, strict=True)]
    best = None
    for chosen in product(*starts):
        runs = zip(chosen, answer, strict=True)
        union = {t for p, o in runs for t in range(p, p + o) if t < len(by_step)}
        total = sum(by_step[t] for t in union)
        total += sum(
            int(cost[p - a]) for p, a, cost in zip(chosen, first, costs, strict=True)
        )
        best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize("seed", range(60))
def test_valid_values_are_never_above_the_least_cost(seed):
    """Drawn at random, then lowered by what they are too high; and barely so."""
    rng = np.random.default_rng(seed)
    answer, first, costs, ends, rest = drawn(rng)
    value = rng.integers(0, 40, len(answer))

    def over():
        return excess(
            zip(answer, first, costs, value.tolist(), strict=True), ends, rest
        )

    value = value - over()
    assert over() == 0
    assert int(value.sum()) <= least_together(answer, first, costs, ends, rest)
    value = value + 1
    assert over() in {0, *range(1, len(answer) + 1)}


def test_least_costs_are_valid_and_a_prefix_adds_to_them():
    """Two answers of 3 steps, a rest of 2 a step: 6 for one of them, not for both."""
    ends, rest = np.array([4, 8]), np.array([2, 2])
    cost = np.zeros(9, dtype=np.int64)
    cost[6:] = 90  # later starts are dear
    for values, wanted in (((0, 0), 0), ((3, 3), 0), ((6, 0), 0), ((4, 3), 1)):
        members = [(3, 0, cost, value) for value in values]
        assert excess(members, ends, rest) == wanted


def test_values_that_64_bits_do_not_hold_are_refused():
    """Their sum would wrap around."""
    members = [(1, 0, np.zeros(2, dtype=np.int64), MOST_PAID)]
    with pytest.raises(CertificateError, match="too high"):
        excess(members, np.array([1]), np.array([1]))


@settings(max_examples=60)
@given(shared_instances(min_requests=2, max_requests=4, max_length=5), st.integers(0))
def test_no_values_prove_more_than_the_optimum(instance, seed):
    """As high as the checker lets them be, at any prices, splits kept or dropped."""
    if instance.prefixes is None:
        return
    rng = np.random.default_rng(seed)
    split = random_split(instance, rng)
    if rng.random() < 0.7:
        split.pays[:] = rng.integers(0, split.pays + 1)
    value = np.zeros(instance.num_requests, dtype=np.int64)
    best = None
    for step in (64, 4):
        for i in rng.permutation(len(value)).tolist():
            for _ in range(12):
                value[i] += step
                try:
                    best = proven_bound(instance, replace(split, value=value.copy()))
                except CertificateError:
                    value[i] -= step
                    break
    if best is not None:
        assert best <= naive.best_tel(instance)
