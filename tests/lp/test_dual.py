"""The dual bound: valid, better than the fluid bound's prices, and anytime."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lp.dual
from lp.dual import climb
from lp.prices import dual_value, fixed_point
from lp.relaxation import solve_relaxation
from lp.smoothing import smoothed_dual
from sortedf import EngineModel, Instance, bound, check, solve
from sortedf.bounds import BoundOptions
from sortedf.certificate import proven_bound
from sortedf.fluid_prices import fluid_prices
from sortedf.volume import volume
from tests import naive
from tests.strategies import engines, examples, instances


def documents_and_chats(n: int, seed: int, budget: int = 1600) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.3
    prefill = np.where(long, rng.integers(200, 400, n), rng.integers(1, 40, n))
    return Instance(prefill, rng.integers(1, 60, n), budget)


@examples(40)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_dual_is_never_above_the_optimum(instance):
    """Exhaustive search over all starts finds nothing below it."""
    found = bound(instance, "dual")
    assert found.value <= naive.best_tel(instance)
    assert proven_bound(instance, found.certificate) == found.certificate.bound


@examples(12)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([1, 16]))
def test_dual_is_never_above_any_schedule(seed, arrivals, block):
    """Larger instances, whose optimum is unknown."""
    instance = documents_and_chats(25, seed)
    if arrivals:
        arrival = np.random.default_rng(seed).integers(0, 300, 25)
        instance = instance.replace(arrival=arrival)
    instance = instance.replace(
        engine=EngineModel(instance.kv_budget, block_size=block)
    )
    found = bound(instance, "dual")
    for name in ("svf", "sorted-f", "auto"):
        result = solve(instance, name, bound="none")
        assert found.value <= check(instance, result.schedule).tel


@examples(25)
@given(instances(max_requests=8, max_length=8))
def test_dual_is_close_to_the_relaxation_and_not_above(instance):
    """The climb ends within half a percent or one step of the LP, never above it."""
    optimum = solve_relaxation(instance).objective
    dual = bound(instance, "dual").value
    assert optimum is not None
    assert dual <= np.ceil(optimum - 1e-6)
    assert dual >= 0.995 * optimum - 1


def test_climbing_lifts_the_bound_of_the_start_prices():
    """Where few requests run at once the gain is several percent."""
    instance = documents_and_chats(40, 1)
    ascent = climb(instance, BoundOptions())
    assert ascent.history == sorted(ascent.history)
    assert ascent.history[-1] > 1.02 * ascent.history[0]
    assert ascent.certificate.bound == ascent.history[-1]


def test_fluid_prices_are_the_closed_form_of_a_backlog():
    """Slope -1 / v_k on each piece, 0 at the end."""
    instance = documents_and_chats(50, 2)
    volumes = np.sort(volume(instance)) / instance.usable_kv
    ends = np.concatenate([[0], np.cumsum(volumes)])
    prices = fluid_prices(instance)
    assert len(prices) == int(np.ceil(ends[-1]))
    levels = np.arange(50, -1, -1) / instance.usable_kv
    expected = np.interp(np.arange(len(prices)) + 0.5, ends, levels)
    np.testing.assert_allclose(prices, expected, atol=1e-12)


def test_fluid_prices_jump_only_up_and_only_at_arrivals():
    """A small request that arrives interrupts; when idle, memory is free."""
    instance = Instance([100, 1, 50], [50, 5, 30], 200, [0, 10, 900])
    prices = fluid_prices(instance)
    rises = np.flatnonzero(np.diff(prices) > 1e-12) + 1
    assert set(rises.tolist()) <= {10, 900}
    assert (prices[100:900] == 0).all()
    assert (prices >= 0).all()


@pytest.mark.kernel
@given(instances(max_requests=5, engine=engines()), st.integers(0, 100))
def test_smoothed_gradient_is_the_slope(instance, seed):
    """Against differences in three random steps, blocks and arrivals included."""
    rng = np.random.default_rng(seed)
    prices = rng.random(50) * 0.05 + 0.01
    hint = instance.arrival.copy()
    here = smoothed_dual(instance, prices, 2.0, hint)
    for k in rng.integers(0, 50, 3):
        step = np.zeros(50)
        step[k] = 1e-5
        up = smoothed_dual(instance, prices + step, 2.0, hint).value
        down = smoothed_dual(instance, prices - step, 2.0, hint).value
        slope = (up - down) / 2e-5
        assert slope == pytest.approx(here.excess[k], rel=1e-3, abs=1e-3)


@pytest.mark.kernel
@given(instances(max_requests=5, engine=engines()), st.integers(0, 100))
def test_soft_minimum_approaches_the_exact_dual(instance, seed):
    """From below, and within n tau log(T + 1)."""
    prices = np.random.default_rng(seed).random(40) * 0.05
    fixed = fixed_point(instance, prices)
    exact = dual_value(instance, fixed)[1] / 2**fixed.scale_bits
    starts = np.log(41 + int(instance.arrival.max()))
    for temperature in (1.0, 0.1, 0.01):
        soft = smoothed_dual(instance, prices, temperature, instance.arrival).value
        slack = instance.num_requests * temperature * starts
        assert exact - slack - 1e-6 <= soft <= exact + 1e-6


def test_time_limit_and_target_stop_the_ascent():
    """Anytime: with no time at all there is still the bound of the start prices."""
    instance = documents_and_chats(200, 3)
    assert len(climb(instance, BoundOptions(time_limit_s=0)).history) == 1
    full = climb(instance, BoundOptions())
    target = full.history[2]
    early = climb(instance, BoundOptions(target=target))
    assert early.history == full.history[: full.history.index(target) + 1]
    began = time.perf_counter()
    limited = climb(documents_and_chats(1500, 3), BoundOptions(time_limit_s=0.5))
    assert time.perf_counter() - began < 20
    assert limited.certificate.bound > 0


def test_an_interrupt_loses_only_its_stage(monkeypatch):
    """Ctrl-C in the second stage gives the bound of the first."""
    instance = documents_and_chats(60, 4)
    full = climb(instance, BoundOptions())
    calls = []

    class Interrupted(lp.dual._Stage):
        def climb(self, prices):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return super().climb(prices)

    monkeypatch.setattr(lp.dual, "_Stage", Interrupted)
    stopped = climb(instance, BoundOptions())
    assert stopped.history == full.history[:2]
    assert stopped.certificate.bound == full.history[1]


def test_progress_is_told():
    """After the start and after each stage."""
    seen = []
    options = BoundOptions(progress=lambda value, total: seen.append((value, total)))
    ascent = climb(documents_and_chats(30, 5), options)
    assert seen == [(value, 0) for value in ascent.history]


def test_backlog_that_fits_at_once():
    """All prices end at 0, and the bound is the optimum."""
    instance = Instance([1, 2, 3], [5, 6, 7], 100)
    assert bound(instance, "dual").value == 18


def test_empty_instance():
    """Nothing to price."""
    assert bound(Instance([], [], 5), "dual").value == 0


def test_bounds_of_one_call_climb_once(monkeypatch):
    """Growth and branching begin with the same climb, and each did it again."""
    climbs = []

    def counted(instance, options):
        climbs.append(1)
        return climb(instance, options)

    monkeypatch.setattr(lp.dual, "climb", counted)
    instance = documents_and_chats(30, 4)
    bound(instance)
    assert len(climbs) == 1
    bound(instance)
    assert len(climbs) == 2
