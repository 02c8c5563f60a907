"""The climb to split prices."""

from __future__ import annotations

import numpy as np
import pytest

from sortedf import EngineModel, bound, generate
from sortedf.bounds import BOUNDS, BoundOptions
from sortedf.bounds.split_kernels import least_costs, shares_of_starts
from sortedf.certificate import proven_bound


def drawn(seed):
    """Lengths, stretches and prices of a few requests."""
    rng = np.random.default_rng(seed)
    n, count = 5, 4
    own, decode = rng.integers(1, 9, (2, n))
    arrival = rng.integers(0, 4, n)
    cut = np.concatenate([[0], np.cumsum(rng.integers(1, 7, count))])
    row = rng.integers(0, 2, n)
    return (
        own,
        decode,
        arrival,
        cut,
        row,
        rng.random((2, count)),
        rng.random((n, count)),
    )


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(8))
def test_shares_of_starts_are_those_of_sums(seed):
    """Least costs over the grid, and mean use, added up step by step."""
    own, decode, arrival, cut, row, token, flat = drawn(seed)
    n, count, last = len(own), len(cut) - 1, int(cut[-1])
    grid = np.arange(last + 1)
    stretch = np.repeat(np.arange(count), np.diff(cut))
    running, held = np.empty((2, n, count))
    width = 0.7
    total = shares_of_starts(
        own, decode, arrival, cut, row, token, flat, grid, width, running, held
    )
    wanted = 0.0
    for i in range(n):
        starts = range(int(arrival[i]), last + 1)
        costs, uses = [], []
        for p in starts:
            use = np.zeros((2, count))
            for t in range(p + 1, min(p + int(decode[i]), last) + 1):
                use[:, stretch[t - 1]] += 1, own[i] + t - p
            costs.append(p + decode[i] + use[1] @ token[row[i]] + use[0] @ flat[i])
            uses.append(use)
        share = np.exp(-(np.array(costs) - min(costs)) / width)
        mean = np.tensordot(share / share.sum(), np.array(uses), 1)
        assert running[i] == pytest.approx(mean[0], abs=1e-9)
        assert held[i] == pytest.approx(mean[1], abs=1e-9)
        wanted += min(costs)
    assert total == pytest.approx(wanted)


@pytest.mark.kernel
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_least_costs_are_those_of_sums(seed, block):
    """In integers, own tokens in whole blocks."""
    own, decode, arrival, cut, row, token, flat = drawn(seed)
    token, flat = (np.floor(part * 64).astype(np.int64) for part in (token, flat))
    last = int(cut[-1])
    stretch = np.repeat(np.arange(len(cut) - 1), np.diff(cut))
    found = least_costs(own, decode, arrival, block, cut, row, token, flat, 5)
    for i in range(len(own)):
        costs = []
        for p in range(int(arrival[i]), max(last, int(arrival[i])) + 1):
            cost = (p + int(decode[i])) * 32
            for t in range(p + 1, min(p + int(decode[i]), last) + 1):
                tokens = -(-int(own[i] + t - p) // block) * block
                k = stretch[t - 1]
                cost += tokens * int(token[row[i], k]) + int(flat[i, k])
            costs.append(cost)
        assert found[i] == min(costs)


@pytest.fixture(scope="module")
def instance():
    trace = generate("system-prompts", 100, seed=2, per_prefix=25)
    engine = EngineModel(8192, 16, prefix_caching=True)
    return trace.to_instance(engine=engine)[0]


@pytest.mark.slow
def test_it_is_far_above_equal_charges(instance):
    """By 2 % or more here, with a certificate that proves it to the last step."""
    least = bound(instance, "equal-charges", time_limit=2).value
    found = bound(instance, "split-prices")
    assert found.value > 1.02 * least
    assert proven_bound(instance, found.certificate) == found.value
    assert bound(instance, time_limit=20).method == "split-prices"


def test_it_stops_at_its_target_and_its_limit(instance):
    """With what it has proven until then."""
    least = int(instance.decode.sum())
    seen = []
    options = BoundOptions(
        target=least + 1, progress=lambda done, _: seen.append(done), effort=0.2
    )
    prove = BOUNDS["split-prices"].prove
    assert prove(instance, options).value > least
    assert len(seen) < 30
    none = prove(instance, BoundOptions(time_limit_s=0.0))
    assert none.value >= least
    assert proven_bound(instance, none.certificate) == none.value
