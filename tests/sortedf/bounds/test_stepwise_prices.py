"""The search for prices of each step: its kernel, its bound and its orders."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortedf.bounds import stepwise_prices as module
from sortedf.bounds.seconds import _priced, seconds_bound
from sortedf.bounds.stepwise_prices import stepwise_certificate, stepwise_prices
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.plan import Admission, Follower
from sortedf.engine_plan.planning import plan_engine
from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS
from sortedf.engine_plan.stepwise_certificate import StepwiseCertificate
from sortedf.engine_plan.workload import EngineWorkload
from tests.sortedf.engine_plan.brute import least_total
from tests.sortedf.engine_plan.workloads import workloads


def mix(n: int, seed: int, rules: EngineModel) -> EngineWorkload:
    """Chats, and documents with short answers."""
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(400, 1600, n), rng.integers(5, 120, n))
    decode = np.where(long, rng.integers(5, 60, n), rng.integers(20, 400, n))
    return EngineWorkload(prefill, decode, rules)


@pytest.mark.kernel
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_costs_and_use_are_those_of_every_step(data: st.DataObject) -> None:
    """A slow twin adds up prices and capacity step by step."""
    n = data.draw(st.integers(1, 4))
    ints = st.integers(1, 9)
    s = np.array(data.draw(st.lists(ints, min_size=n, max_size=n)))
    o = np.array(data.draw(st.lists(ints, min_size=n, max_size=n)))
    count = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    runs = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    edges = np.concatenate([[0], np.cumsum(runs)])
    chunk = float(data.draw(st.integers(2, 10)))
    # The last stretch begins late enough for every prompt to have its chunks.
    edges = np.concatenate([edges, edges[-1] + [int(s.max()), int(s.max()) + 1]])
    p = len(edges) - 1
    part = st.floats(0, 2, allow_subnormal=False)
    price = np.array(data.draw(st.lists(part, min_size=3 * p, max_size=3 * p)))
    price = price.reshape(3, p)
    size, slack, heat = 2.0, 0.5, data.draw(st.floats(0.5, 5))
    value, used, mean = module._smoothed(
        s, o, count, edges, price, size, slack, chunk, heat, 1e9
    )
    by_step = np.repeat(price, np.diff(edges), axis=1)
    expected, use = 0.0, np.zeros((3, edges[-1]))
    for i in range(n):
        costs, uses, starts = [], [], []
        for t in edges[:-1].tolist():
            if t < int(np.ceil(s[i] / chunk)) - 1:
                continue
            one = np.zeros((3, edges[-1]))
            for u in range(t + 1, min(t + int(o[i]), edges[-1]) + 1):
                one[0, u - 1] += 1
                one[1, u - 1] += (s[i] + u - t - 1 + slack) / size
                one[2, u - 1] += 1 if u > t + 1 else 0
            for position in range(int(s[i])):
                one[2, t - int(position // chunk)] += 1
            costs.append(t + o[i] + (by_step * one).sum())
            uses.append(one)
            starts.append(t)
        weights = np.exp(-(np.array(costs) - min(costs)) / heat)
        expected += count[i] * (min(costs) - heat * np.log(weights.sum()))
        weights /= weights.sum()
        use += count[i] * sum(w * u for w, u in zip(weights, uses, strict=True))
        assert mean[i] == pytest.approx(weights @ starts)
    assert value == pytest.approx(expected)
    cuts = edges[:-1]
    assert np.allclose(used, np.add.reduceat(use, cuts, axis=1))


@pytest.mark.kernel
def test_gradient_is_that_of_the_value() -> None:
    """By finite differences."""
    workload = mix(12, 1, EngineModel.vllm(2000, 16, 6, 256))
    climb = module._Climb(workload)
    at = climb.start() + 0.01
    _, slope = climb.smoothed(at, 40.0)
    for k in np.random.default_rng(2).integers(0, len(at), 12):
        near = at.copy()
        near[k] += 1e-4
        up, _ = climb.smoothed(near, 40.0)
        near[k] -= 2e-4
        down, _ = climb.smoothed(near, 40.0)
        assert (up - down) / 2e-4 == pytest.approx(slope[k], rel=1e-3, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(workloads(max_requests=2))
def test_what_is_found_is_below_the_best_schedule(workload: EngineWorkload) -> None:
    """Tiny workloads, with steps of any length and arrivals."""
    found = stepwise_prices(workload)
    whole = (MIX_SCALE, *(0 for _ in workload.step_times[1:]))
    claim = stepwise_certificate(workload, whole, found)
    assert claim.bound <= least_total(workload) * UNITS
    for order in found.orders:
        assert sorted(order.tolist()) == list(range(workload.num_requests))


def test_places_and_memory_that_bind_at_different_times() -> None:
    """No sum of the rows with weights that stay the same proves as much.

    The order by prices is better than those by one number per request, which fill the
    places first and the memory last.
    """
    workload = mix(600, 3, EngineModel.vllm(24_000, 16, 120, 2048))
    least = seconds_bound(workload)
    assert isinstance(least.certificate, StepwiseCertificate)
    assert least.prices is not None
    constant = max(_priced(workload, (MIX_SCALE,)).bound, 1)
    assert least.certificate.bound > 1.02 * constant
    follower = Follower(workload)
    by_prices = min(
        follower.total_s(order, Admission(backfill))
        for order in least.prices.orders
        for backfill in (0, 64)
    )
    assert by_prices < 1.04 * least.total_s
    for rule in ("fcfs", "mc-sf", "svf", "sorted-f", "least-work"):
        for backfill in (0, 64):
            found = plan_engine(workload, rule, backfill=backfill)
            assert found.plan.total_s > 1.01 * by_prices


def test_a_plan_starts_from_the_prices_of_a_bound() -> None:
    """And refuses those of other requests."""
    workload = mix(60, 3, EngineModel.vllm(8000, 16, 8, 2048))
    least = seconds_bound(workload)
    given = plan_engine(workload, prices=least.prices)
    assert given.plan.order.tolist() == plan_engine(workload).plan.order.tolist()
    other = mix(61, 3, EngineModel.vllm(8000, 16, 8, 2048))
    with pytest.raises(ValueError, match="60 requests, and the workload has 61"):
        plan_engine(other, prices=least.prices)


def test_a_deadline_ends_the_search() -> None:
    """With the prices found so far, and one order at least."""
    workload = mix(300, 5, EngineModel.vllm(20_000, 16, 40, 2048))
    found = stepwise_prices(workload, time.perf_counter())
    assert len(found.orders) == 1
    assert len(stepwise_prices(workload).orders) == len(module.TEMPERATURES)


def test_a_capacity_that_cannot_be_filled_never_has_a_price() -> None:
    """What was left of it in a search that time ended made the bound worthless."""
    workload = mix(300, 5, EngineModel.vllm(20_000, 16, 40))
    found = stepwise_prices(workload, time.perf_counter())
    assert not found.prices[2].any()
    claim = stepwise_certificate(workload, (MIX_SCALE,), found)
    full = stepwise_certificate(workload, (MIX_SCALE,), stepwise_prices(workload))
    assert 0.7 * full.bound < claim.bound <= full.bound
