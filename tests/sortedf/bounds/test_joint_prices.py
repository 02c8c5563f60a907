"""The climb to joint values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sortedf import EngineModel, Instance, bound, generate
from sortedf.bounds import BOUNDS, BoundOptions
from sortedf.bounds.joint_kernels import joint_excess, window_costs
from sortedf.bounds.joint_prices import JointClimb
from sortedf.bounds.split_prices import split_prices
from sortedf.certificate import proven_bound, read_certificate, write_certificate
from sortedf.errors import CertificateError
from sortedf.joint_values import excess
from sortedf.shared_prefixes import SharedPrefixes
from tests import naive


def drawn(seed):
    """Lengths, stretches and prices of a few requests of one leaf."""
    rng = np.random.default_rng(seed)
    n, count = 4, 4
    own, decode = rng.integers(1, 9, (2, n))
    decode = np.sort(decode)
    arrival = rng.integers(0, 4, n)
    cut = np.concatenate([[0], np.cumsum(rng.integers(1, 7, count))])
    token, rest = rng.random((2, count)).round(2)
    return own, decode, arrival, cut, token, rng.random((n, count)).round(2), rest * 9


def cost_of(s, o, p, cut, token, flat):
    """Cost of one start, step by step."""
    stretch = np.repeat(np.arange(len(token)), np.diff(cut))
    steps = range(p + 1, min(p + o, int(cut[-1])) + 1)
    paid = sum(
        (s + t - p) * token[stretch[t - 1]] + flat[stretch[t - 1]] for t in steps
    )
    return p + o + paid


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(8))
def test_least_costs_of_windows_are_those_of_all_starts(seed):
    """Of runs that begin and end within them."""
    own, decode, arrival, cut, token, flat, _ = drawn(seed)
    count, last = len(token), int(cut[-1])
    wide = count + 1
    least = np.empty((count + 1, wide))
    start = np.empty((count + 1, wide), dtype=np.int64)
    grid = np.arange(last + 1)
    ends = np.append(cut[1:], 10**6)
    for i in range(len(own)):
        s, o, arrived = int(own[i]), int(decode[i]), int(arrival[i])
        window_costs(s, o, arrived, cut, token, flat[i], grid, least, start)
        for a in range(count + 1):
            for b in range(a, count + 1):
                costs = [
                    cost_of(s, o, p, cut, token, flat[i])
                    for p in range(arrived, max(last, arrived) + 1)
                    if np.searchsorted(ends, p + 1) >= a
                    and np.searchsorted(ends, p + o) <= b
                ]
                wanted = min(costs, default=np.inf)
                assert least[a, b - a] == pytest.approx(wanted)
                if costs:
                    p = int(start[a, b - a])
                    assert cost_of(s, o, p, cut, token, flat[i]) == pytest.approx(
                        wanted
                    )


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(8))
def test_the_excess_is_that_of_the_checker(seed):
    """Over all windows; and its shares add up to the number of requests."""
    own, decode, arrival, cut, token, flat, rest = drawn(seed)
    n, count = flat.shape
    last = int(cut[-1])
    value = np.random.default_rng(seed).random(n) * 60
    weight, used = np.zeros(n), np.zeros(count)
    running, held = np.zeros((2, n, count))
    found = joint_excess(
        np.arange(n), own, decode, arrival, cut, token, flat, rest,
        np.arange(last + 1), count + 1, value, 0.01, weight, running, held, used,
    )  # fmt: skip
    scale = 2**20
    members = []
    for i in range(n):
        s, o, arrived = int(own[i]), int(decode[i]), int(arrival[i])
        starts = range(arrived, max(last, arrived) + 1)
        costs = [scale * cost_of(s, o, p, cut, token, flat[i]) for p in starts]
        whole = np.array(costs).round().astype(np.int64)
        members.append((o, arrived, whole, round(scale * value[i])))
    over = excess(members, cut[1:], np.round(rest * scale).astype(np.int64))
    assert found == pytest.approx(over / scale, abs=1e-3)
    assert weight.max() <= n + 1e-9
    assert (running.sum(axis=1) <= weight * decode + 1e-9).all()
    if found > 0.5:
        assert weight.sum() >= n - 1e-6


SHARED = SharedPrefixes([-1, 0], [6, 2], [0, 1, 1])
INSTANCE = Instance(
    [7, 9, 10], [3, 3, 4], prefixes=SHARED, engine=EngineModel(16, prefix_caching=True)
)


@pytest.fixture(scope="module")
def climbed():
    trace = generate("document-questions", 60, seed=2, per_prefix=12)
    engine = EngineModel(8192, 16, prefix_caching=True)
    instance = trace.to_instance(engine=engine)[0]
    split = split_prices(instance, BoundOptions(effort=0.2))
    climb = JointClimb(instance, instance.prefixes, split.certificate)
    for k in range(40):
        climb.step(k / 40)
    return instance, split.value, climb.joint_certificate()


def test_it_is_above_splits_and_proven(climbed, tmp_path):
    """By some percent, to the last step, and from a file too."""
    instance, split, claim = climbed
    assert claim.bound > 1.02 * split
    assert proven_bound(instance, claim) == claim.bound
    write_certificate(claim, tmp_path / "proof.json")
    assert (
        proven_bound(instance, read_certificate(tmp_path / "proof.json")) == claim.bound
    )


def test_values_that_are_too_high_are_refused(climbed):
    """By as little as the scale holds; and too few of them, or negative ones."""
    instance, _, claim = climbed
    higher = claim.value.copy()
    higher[np.argmax(instance.decode)] += 2 ** (claim.scale_bits + 12)
    for value, message in (
        (higher, "higher than what they can cost"),
        (claim.value[1:], "value has 59 entries but must have none or 60"),
        (claim.value - claim.value.max(), "value must hold integers from 0"),
    ):
        with pytest.raises(CertificateError, match=message):
            proven_bound(instance, replace(claim, value=value))


def test_other_fields_that_would_prove_more_are_refused(climbed):
    """Less paid for the cache, more for the rest of a prefix."""
    instance, _, claim = climbed
    for change in ({"price": claim.price // 2}, {"own": claim.own * 2 + 1}):
        with pytest.raises(CertificateError, match=r"more than its price|higher than"):
            proven_bound(instance, replace(claim, **change))


def test_it_is_never_below_splits_nor_above_the_optimum():
    """On a small forest, with a certificate."""
    found = bound(INSTANCE, "joint-values")
    assert bound(INSTANCE, "split-prices").value <= found.value
    assert found.value <= naive.best_tel(INSTANCE)
    assert proven_bound(INSTANCE, found.certificate) == found.value


def test_it_stops_at_its_target_and_its_limit(climbed):
    """With what it has proven until then."""
    instance = climbed[0]
    prove = BOUNDS["joint-values"].prove
    least = int(instance.decode.sum())
    for options in (BoundOptions(target=least + 1), BoundOptions(time_limit_s=0.0)):
        found = prove(instance, options)
        assert found.value >= least
        assert proven_bound(instance, found.certificate) == found.value
