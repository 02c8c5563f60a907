"""Prices over time in seconds: below every schedule, exact, and hard to cheat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf.bounds import seconds
from sortedf.bounds.seconds import seconds_bound
from sortedf.bounds.timed_prices import TimedPrices, timed_certificate
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS
from sortedf.engine_plan.timed_certificate import (
    TimedCertificate,
    _Charges,
    timed_prove,
)
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import CertificateError
from sortedf.step_time import PRESETS, StepTime
from tests.sortedf.engine_plan.brute import least_total
from tests.sortedf.engine_plan.naive_timed import Steps
from tests.sortedf.engine_plan.timed_claims import timed_claims
from tests.sortedf.engine_plan.workloads import workloads
from tests.strategies import examples


def _mix(workload: EngineWorkload) -> tuple[int, ...]:
    return (MIX_SCALE, *(0 for _ in workload.step_times[1:]))


@examples(60)
@given(workloads(max_requests=2), st.data())
def test_no_engine_schedule_is_below_what_any_prices_prove(
    workload: EngineWorkload, data: st.DataObject
) -> None:
    """Any ranges, prices over time and ratios are below the best of all schedules."""
    best = least_total(workload) * UNITS
    for _ in range(5):
        assert timed_prove(workload, data.draw(timed_claims(workload))) <= best
    assert timed_certificate(workload, _mix(workload)).bound <= best


@examples(40)
@given(workloads(max_requests=2, max_length=2), st.data())
def test_no_changed_certificate_proves_too_much(
    workload: EngineWorkload, data: st.DataObject
) -> None:
    """With any one number changed it is refused, or what it proves is still true."""
    claim = timed_certificate(workload, _mix(workload))
    best = least_total(workload) * UNITS
    change = st.sampled_from([-UNITS, -1, 1, UNITS // 3, UNITS])
    for name in ("mix", "coefficient", "ratios", "ranges", "knots"):
        values = list(getattr(claim, name))
        k = data.draw(st.integers(0, len(values) - 1))
        if isinstance(values[k], tuple):
            row = list(values[k])
            row[data.draw(st.integers(0, len(row) - 1))] += data.draw(change)
            values[k] = tuple(row)
        else:
            values[k] += data.draw(change)
        try:
            value = timed_prove(workload, replace(claim, **{name: tuple(values)}))
        except CertificateError:
            continue
        assert value <= best


@examples(60)
@given(
    st.integers(1, 40), st.integers(2, 40), st.integers(1, 3), st.booleans(), st.data()
)
def test_no_choice_of_steps_pays_less_than_the_least(
    s: int, o: int, size: int, evicts: bool, data: st.DataObject
) -> None:
    """The least over rows of tokens is below what any lengths of steps cost."""
    few = st.integers(0, 4)
    step_time = StepTime(*map(float, (data.draw(st.integers(1, 5)), *(
        data.draw(few) for _ in "bgd"
    ))))  # fmt: skip
    rules = EngineModel.vllm(
        200, size, 4, 64, eviction="recompute" if evicts else "restart"
    )
    workload = EngineWorkload([s], [o], rules, (step_time,))
    claim = data.draw(timed_claims(workload))
    charges = _Charges(workload, claim)
    work, twice = charges.prompt(s)
    twin = Steps(workload, claim)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    least = charges.least(s, o, claim.ratios)
    for value, ratio in zip(least, claim.ratios, strict=True):
        for _ in range(20):
            lengths = rng.uniform(0, 2 * twin.longest) * rng.uniform(0.2, 1, o - 1)
            lengths = np.minimum(np.sort(lengths)[::-1], twin.longest)
            paid, after = twin.paid(s, o, lengths.tolist(), ratio / UNITS)
            paid += work / UNITS * (ratio / UNITS + after) + twice / UNITS**2 / 2
            assert value / UNITS**2 <= paid * (1 + 1e-9)


@examples(60)
@given(workloads(max_requests=4, max_length=9))
def test_search_reckons_with_what_is_proven_in_the_end(
    workload: EngineWorkload,
) -> None:
    """Sums in floating point, by which prices are compared, agree with the proof."""
    prices = TimedPrices(workload, _mix(workload))
    found = prices.best()
    claim = prices.certificate(found)
    arrived = float(workload.arrival_s.sum())
    expected = max(found.total_s - arrived, 0.0)
    assert claim.bound / UNITS == pytest.approx(expected, rel=1e-6, abs=1e-6)


def _decoding(n: int, **caps: int) -> EngineWorkload:
    rng = np.random.default_rng(4)
    rules = EngineModel.vllm(400_000, 16, **caps)
    lengths = rng.integers(20, 400, n), rng.integers(100, 300, n)
    return EngineWorkload(*lengths, rules, (PRESETS["a100-llama-3-8b"],))


def test_steps_cannot_be_short_and_full() -> None:
    """Where places are many, prices by length of step prove what one set does not."""
    workload = _decoding(300, max_num_seqs=1024, max_batched_tokens=8192)
    claim = seconds_bound(workload).certificate
    assert isinstance(claim, TimedCertificate)
    assert timed_prove(workload, claim) == claim.bound
    assert claim.bound > 1.1 * seconds._priced(workload, claim.mix).bound


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ranges", lambda rows: (), "ranges must be rows"),
        ("ranges", lambda rows: ((1, *rows[0][1:]),), "from 0 on"),
        ("ranges", lambda rows: (*rows, rows[-1]), "ranges must be in ascending"),
        ("ranges", lambda rows: ((0, 10**18, 0, 0, 0),), "above the constant"),
        ("knots", lambda rows: (rows[0],), "convex function|two or more"),
        ("knots", lambda rows: rows[:-1], "convex function"),
        ("knots", lambda rows: ((0, 3), (5, 2), (6, 0)), "convex function"),
        ("knots", lambda rows: ((0, 3), (5, 3), (6, 0)), "convex function"),
        ("knots", lambda rows: ((0, 3), (0, 1), (6, 0)), "knots must be in ascending"),
        ("ratios", lambda rows: (0,), "two or more"),
        ("ratios", lambda rows: (1, 2), "from 0 on"),
        ("ratios", lambda rows: (0, 2, 2), "ratios must be in ascending"),
    ],
)
def test_numbers_out_of_range_are_refused(name, change, message) -> None:
    """Each rule has a message that names the field."""
    workload = EngineWorkload([3, 4], [2, 5], EngineModel.vllm(kv_budget=100))
    claim = timed_certificate(workload, (MIX_SCALE,))
    changed = replace(claim, **{name: change(getattr(claim, name))})
    with pytest.raises(CertificateError, match=message):
        timed_prove(workload, changed)


def test_certificate_of_another_workload_is_refused() -> None:
    """It names the requests, rules and step times that it is about."""
    rules = EngineModel.vllm(kv_budget=100)
    claim = timed_certificate(EngineWorkload([3], [2], rules), (MIX_SCALE,))
    with pytest.raises(CertificateError, match="another workload"):
        timed_prove(EngineWorkload([3], [3], rules), claim)
