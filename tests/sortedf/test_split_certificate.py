"""Split prices: any valid split proves a bound, and others are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, bound
from sortedf.certificate import (
    instance_hash,
    proven_bound,
    read_certificate,
    write_certificate,
)
from sortedf.errors import CertificateError
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.split_certificate import SplitCertificate
from tests import naive
from tests.strategies import examples, shared_instances

SHARED = SharedPrefixes([-1, 0], [6, 2], [0, 1, 1])
INSTANCE = Instance(
    [7, 9, 10], [3, 3, 4], prefixes=SHARED, engine=EngineModel(16, prefix_caching=True)
)


def random_split(instance: Instance, rng: np.random.Generator) -> SplitCertificate:
    """Draw prices, and splits that pay for each node just its price, or less."""
    shared, block = instance.prefixes, instance.engine.block_size
    count = int(rng.integers(1, 5))
    price = rng.integers(0, 40, count)
    members = shared.members()
    node = np.repeat(np.arange(len(shared)), [len(ids) for ids in members])
    own = np.zeros((len(shared), count), dtype=np.int64)
    pays = np.zeros((len(node), count), dtype=np.int64)
    for m in range(len(shared)):
        pairs = np.flatnonzero(node == m)
        room = instance.usable_kv - int(shared.depth[m]) * block
        for k in range(count):
            left = int(price[k]) * int(shared.blocks[m]) * block
            own[m, k] = rng.integers(0, left // room + 1)
            left -= int(own[m, k]) * room
            cuts = np.sort(rng.integers(0, left + 1, len(pairs)))
            pays[pairs, k] = np.diff(cuts, prepend=0)
    return SplitCertificate(
        instance_hash(instance), 0, int(rng.integers(0, 7)),
        np.cumsum(rng.integers(1, 6, count)), price, own.ravel(),
        node, np.concatenate(members), pays.ravel(),
    )  # fmt: skip


@examples(150)
@given(shared_instances(min_requests=2, max_requests=4, max_length=5), st.integers(0))
def test_no_split_proves_more_than_the_optimum(instance, seed):
    """Good prices or absurd ones."""
    if instance.prefixes is None:
        return
    claim = random_split(instance, np.random.default_rng(seed))
    assert proven_bound(instance, claim) <= naive.best_tel(instance)


@given(shared_instances(min_requests=2, max_requests=4), st.integers(0))
def test_a_split_proves_its_formula(instance, seed):
    """Request by request, start by start and step by step."""
    if instance.prefixes is None:
        return
    claim = random_split(instance, np.random.default_rng(seed))
    shared, block = instance.prefixes, instance.engine.block_size
    count, last = len(claim.price), int(claim.end[-1])
    own, pays = claim.own.reshape(-1, count), claim.pays.reshape(-1, count)
    stretch = [int(np.searchsorted(claim.end, t)) for t in range(1, last + 1)]
    total = -instance.usable_kv * sum(int(claim.price[k]) for k in stretch)
    for i in range(instance.num_requests):
        s, o, a = (
            int(x[i]) for x in (instance.prefill, instance.decode, instance.arrival)
        )
        path = shared.path(i)
        costs = []
        for start in range(a, max(a, last) + 1):
            cost = (start + o - a) << claim.scale_bits
            for t in range(start + 1, min(start + o, last) + 1):
                k = stretch[t - 1]
                held = -(-(s + t - start) // block) - sum(
                    int(shared.blocks[m]) for m in path
                )
                cost += (
                    held
                    * block
                    * (int(claim.price[k]) + sum(int(own[m, k]) for m in path))
                )
                cost += int(pays[claim.member == i, k].sum())
            costs.append(cost)
        total += min(costs)
    assert proven_bound(instance, claim) == -(-total >> claim.scale_bits)


def test_a_file_proves_the_same(tmp_path):
    """To the last number."""
    found = bound(INSTANCE, "split-prices")
    write_certificate(found.certificate, tmp_path / "proof.json")
    again = read_certificate(tmp_path / "proof.json")
    assert proven_bound(INSTANCE, again) == found.value == again.bound


GOOD = SplitCertificate(
    instance_hash(INSTANCE), 0, 0, np.array([2, 5]), np.array([5, 1]),
    np.array([1, 0, 1, 0]), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 2]),
    np.array([10, 2, 10, 2, 0, 2, 1, 2, 1, 0]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pays": [11, 2, 10, 2, 0, 2, 1, 2, 1, 0]}, "below node 0 pay more .* 0"),
        ({"pays": [10, 2, 10, 2, 0, 2, 1, 2, 1, 1]}, "below node 1 pay more .* 1"),
        ({"own": [2, 0, 1, 0]}, "below node 0 pay more than its price in stretch 0"),
        ({"price": [4, 1]}, "below node 0 pay more than its price in stretch 0"),
        ({"member": [0, 1, 2, 0, 2]}, "pair 3: request 0 is not below node 1"),
        ({"member": [0, 1, 9, 1, 2]}, "pair 2: request 9 is not below node 0"),
        ({"price": [5]}, "price has 1 entries but must have 2"),
        ({"end": [2, 2]}, "end must ascend from 1 on"),
        ({"pays": [10, 2, 10, 2, 0, 2, 1, 2, 1, -1]}, "pays must hold integers from 0"),
    ],
)
def test_splits_that_are_not_valid_are_refused(change, message):
    """Whatever they would prove."""
    assert proven_bound(INSTANCE, GOOD) <= naive.best_tel(INSTANCE)
    arrays = {name: np.array(values, dtype=np.int64) for name, values in change.items()}
    with pytest.raises(CertificateError, match=message):
        proven_bound(INSTANCE, replace(GOOD, **arrays))


def test_prices_that_64_bits_do_not_hold_are_refused():
    """Of long requests; a sum that wraps around would prove anything."""
    shared = SharedPrefixes([-1], [6], [0, 0])
    engine = EngineModel(9000, prefix_caching=True)
    instance = Instance([7, 7], [4000, 4000], engine=engine, prefixes=shared)
    none = np.zeros(0, dtype=np.int64)
    claim = SplitCertificate(
        instance_hash(instance), 0, 0, np.array([9]), np.array([2**49]),
        np.array([0]), none, none, none,
    )  # fmt: skip
    with pytest.raises(CertificateError, match="too large for exact 64-bit"):
        proven_bound(instance, claim)


def test_scales_out_of_range_are_refused():
    """So that nothing is shifted away."""
    with pytest.raises(CertificateError, match="scale_bits = 41"):
        proven_bound(INSTANCE, replace(GOOD, scale_bits=41))
    alone = Instance([7, 9, 10], [3, 3, 4], 20)
    with pytest.raises(CertificateError, match="no prompts share prefixes whose"):
        proven_bound(alone, replace(GOOD, instance_hash=instance_hash(alone)))
