"""Prices of each step: below every schedule, exact, refused if out of range."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.plan_file import (
    prove_in_seconds,
    read_seconds_certificate,
    write_seconds_certificate,
)
from sortedf.engine_plan.seconds_certificate import MIX_SCALE, UNITS
from sortedf.engine_plan.stepwise_certificate import (
    PRICE_SCALE,
    StepwiseCertificate,
    stepwise_prove,
)
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import CertificateError
from tests.sortedf.engine_plan.brute import least_total
from tests.sortedf.engine_plan.naive_stepwise import proven, stepwise_claims
from tests.sortedf.engine_plan.workloads import workloads


@settings(max_examples=60, deadline=None)
@given(workloads(max_requests=2), st.data())
def test_no_engine_schedule_is_below_what_any_prices_prove(
    workload: EngineWorkload, data: st.DataObject
) -> None:
    """With evictions, chunks, pauses, arrivals and steps of any length."""
    best = least_total(workload) * UNITS
    for _ in range(5):
        assert stepwise_prove(workload, data.draw(stepwise_claims(workload))) <= best


@settings(max_examples=150, deadline=None)
@given(workloads(max_requests=4, max_length=12), st.data())
def test_it_is_its_slow_twin(workload: EngineWorkload, data: st.DataObject) -> None:
    """Sums of stairs in integers are those of the definition."""
    claim = data.draw(stepwise_claims(workload))
    arrived = sum(int(a) for a in workload.arrival_s.tolist()) * UNITS
    expected = max(proven(workload, claim) // 1 - arrived, 0)
    assert stepwise_prove(workload, claim) == expected


def small() -> tuple[EngineWorkload, StepwiseCertificate]:
    """Two requests of one block each, one at a time: 1 + 2 steps."""
    workload = EngineWorkload([1, 1], [1, 1], EngineModel.vllm(1))
    claim = StepwiseCertificate(
        workload.sha256(), 0, (MIX_SCALE,), (UNITS, 0, 0, 0), (1,),
        ((0, PRICE_SCALE, 0),),
    )  # fmt: skip
    return workload, claim


def test_the_price_of_a_full_step_counts_who_has_to_wait() -> None:
    """Both would be done in step 1; each pays a step for it, and the step costs one."""
    workload, claim = small()
    assert stepwise_prove(workload, claim) == 3 * UNITS == least_total(workload) * UNITS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": (), "prices": ()}, "equally long, 1 or more"),
        ({"ends": (1, 2)}, "equally long"),
        ({"ends": (0,)}, "must ascend from 1"),
        ({"ends": (2**24 + 1,)}, "must ascend from 1"),
        ({"ends": (2, 2), "prices": ((0, 1, 0), (0, 1, 0))}, "must ascend from 1"),
        ({"prices": ((0, -1, 0),)}, "3 integers, 0 or more"),
        ({"prices": ((0, 1),)}, "3 integers, 0 or more"),
        ({"ends": (1, 2), "prices": ((0, 1, 0), (1, 1, 0))}, "must not increase"),
        ({"prices": ((2**62, 0, 0),)}, "too large"),
        ({"prices": ((0, 2**62, 0),)}, "too large"),
        ({"prices": ((0, 0, 2**62),)}, "too large"),
        ({"coefficient": (UNITS + 1, 0, 0, 0)}, "above the engine's step time"),
        ({"workload_sha256": "0"}, "another workload"),
    ],
)
def test_numbers_out_of_range_are_refused(change, message) -> None:
    """Each rule has a message that names the field."""
    workload, claim = small()
    with pytest.raises(CertificateError, match=message):
        stepwise_prove(workload, replace(claim, **change))


@settings(max_examples=30, deadline=None)
@given(workloads(max_requests=2, max_length=2), st.data())
def test_no_changed_certificate_proves_too_much(
    workload: EngineWorkload, data: st.DataObject
) -> None:
    """With any one number changed it is refused, or what it proves is still true."""
    claim = data.draw(stepwise_claims(workload))
    best = least_total(workload) * UNITS
    change = st.sampled_from([-PRICE_SCALE, -1, 1, PRICE_SCALE // 3, PRICE_SCALE])
    for name in ("mix", "coefficient", "ends", "prices"):
        values = list(getattr(claim, name))
        k = data.draw(st.integers(0, len(values) - 1))
        if isinstance(values[k], tuple):
            row = list(values[k])
            row[data.draw(st.integers(0, 2))] += data.draw(change)
            values[k] = tuple(row)
        else:
            values[k] += data.draw(change) // PRICE_SCALE
        try:
            value = stepwise_prove(workload, replace(claim, **{name: tuple(values)}))
        except CertificateError:
            continue
        assert value <= best


def test_a_file_proves_the_same(tmp_path) -> None:
    """Ends and prices go through JSON."""
    rules = EngineModel.vllm(64, 4, 3, 8)
    workload = EngineWorkload([5, 9, 3, 12] * 5, [9, 4, 7, 2] * 5, rules)
    claim = seconds_bound(workload).certificate
    assert isinstance(claim, StepwiseCertificate)
    write_seconds_certificate(claim, tmp_path / "proof.json")
    again = read_seconds_certificate(tmp_path / "proof.json")
    assert again == claim
    assert prove_in_seconds(workload, again) == claim.bound
