"""The bound in seconds: below every schedule, exact, and hard to cheat."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.simulator import simulate
from sortedf.bounds import seconds
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.seconds_certificate import (
    MIX_SCALE,
    UNITS,
    SecondsCertificate,
    coefficients,
    seconds_prove,
)
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import CertificateError
from sortedf.step_time import PRESETS, StepTime
from sortedf.traces import Trace
from tests.sortedf.engine_plan import naive_seconds
from tests.sortedf.engine_plan.brute import least_total
from tests.sortedf.engine_plan.workloads import workloads
from tests.strategies import examples

UNIT_PRICE = st.integers(0, 7)


@examples(60)
@given(workloads(max_requests=2))
def test_no_engine_schedule_is_below_it(workload: EngineWorkload) -> None:
    """Whatever an engine may do, it takes at least as long in all."""
    found = seconds_bound(workload)
    best = least_total(workload)
    assert found.certificate.bound <= best * UNITS
    assert found.total_s <= best


@examples(100)
@given(workloads(max_requests=4, max_length=9), st.tuples(*[UNIT_PRICE] * 3))
def test_certificate_is_its_slow_twin_rounded_down_once_per_request(
    workload: EngineWorkload, parts: tuple[int, int, int]
) -> None:
    """Closed forms in integers are the sums token by token in fractions."""
    mix = (MIX_SCALE, *(0 for _ in workload.step_times[1:]))
    exact = coefficients(workload, mix)
    rules = workload.rules
    room = (rules.seqs_cap, rules.num_blocks, rules.tokens_cap)
    scale = max(sum(parts), 1)
    price = tuple(
        exact[0] * part // (scale * limit)
        for part, limit in zip(parts, room, strict=True)
    )
    claim = SecondsCertificate(workload.sha256(), 0, mix, exact, price)
    value = seconds_prove(workload, claim)
    slow = naive_seconds.proven(
        workload,
        [Fraction(c, UNITS) for c in exact],
        [Fraction(p, UNITS) for p in price],
    )
    assert slow * UNITS - workload.num_requests <= value <= slow * UNITS


@examples(60)
@given(workloads(max_requests=4, max_length=9))
def test_search_reckons_with_what_is_proven_in_the_end(
    workload: EngineWorkload,
) -> None:
    """Sums in floating point, by which prices are compared, agree with the proof."""
    claim = max(
        (
            seconds._priced(workload, mix)
            for mix in seconds._mixes(len(workload.step_times))
        ),
        key=lambda claim: claim.bound,
    )
    rules = workload.rules
    numbers = np.array(claim.coefficient, dtype=float) / UNITS
    work, moment = seconds._linear(
        workload.prefill, workload.decode, numbers, rules.block_size,
        rules.extra_slots, float(rules.tokens_cap), rules.eviction == "recompute",
    )  # fmt: skip
    price = np.array([1.0, *(p / UNITS for p in claim.price)])
    if not (price @ work).all():
        return
    order = np.argsort(workload.arrival_s, kind="stable")
    total = seconds._busy(workload.arrival_s, price @ work, order)
    total += float((price @ moment / (2 * (price @ work))).sum())
    exact = (
        [Fraction(c, UNITS) for c in side] for side in (claim.coefficient, claim.price)
    )
    coefficient, prices = exact
    lengths = zip(workload.prefill.tolist(), workload.decode.tolist(), strict=True)
    alone = sum(
        naive_seconds.request(workload, coefficient, prices, s, o)[2]
        for s, o in lengths
    )
    assert max(total, float(alone)) == pytest.approx(claim.bound / UNITS, rel=1e-9)


@examples(40)
@given(workloads(max_requests=2, max_length=2), st.data())
def test_no_changed_certificate_proves_too_much(
    workload: EngineWorkload, data: st.DataObject
) -> None:
    """With any one number changed it is refused, or what it proves is still true."""
    claim = seconds_bound(workload).certificate
    best = least_total(workload) * UNITS
    for name in ("mix", "coefficient", "price"):
        values = list(getattr(claim, name))
        k = data.draw(st.integers(0, len(values) - 1))
        values[k] += data.draw(st.sampled_from([-UNITS, -1, 1, UNITS // 3, UNITS]))
        changed = replace(claim, **{name: tuple(values)})
        try:
            value = seconds_prove(workload, changed)
        except CertificateError:
            continue
        assert value <= best


def test_certificate_of_another_workload_is_refused() -> None:
    """It names the requests, rules and step times that it is about."""
    rules = EngineModel.vllm(kv_budget=100)
    claim = seconds_bound(EngineWorkload([3], [2], rules)).certificate
    with pytest.raises(CertificateError, match="another workload"):
        seconds_prove(EngineWorkload([3], [3], rules), claim)
    other = EngineWorkload([3], [2], rules, (StepTime(2.0),))
    with pytest.raises(CertificateError, match="another workload"):
        seconds_prove(other, claim)


def test_vllm_counts_a_token_less_than_the_papers() -> None:
    """Two requests that each hold one token fit a cache of two, and take two steps.

    A bound that counts `s + j` tokens says that they take three.
    """
    workload = EngineWorkload([1, 1], [1, 1], EngineModel.vllm(kv_budget=2))
    assert seconds_bound(workload).total_s == pytest.approx(2, rel=1e-9)
    papers = EngineModel.vllm(kv_budget=2, counts_new_token=True)
    papers_own = EngineWorkload([1, 1], [1, 1], papers)
    assert seconds_bound(papers_own).total_s == pytest.approx(3, rel=1e-6)


def test_last_position_of_a_prompt_may_cost_what_a_decoded_token_costs() -> None:
    """A chunk of one token counts as decoding: no bound may charge it as a prompt."""
    step_time = StepTime(1.0, prefill_token_s=5.0)
    workload = EngineWorkload([1], [1], EngineModel.vllm(kv_budget=9), (step_time,))
    assert seconds_bound(workload).total_s == 1.0 == least_total(workload)


def test_larger_of_two_forms_is_bounded_by_a_mean_of_them() -> None:
    """A mean of computing and reading can prove more than either alone."""
    rules = EngineModel.vllm(kv_budget=400, max_num_seqs=2, max_batched_tokens=64)
    lengths = ([40, 30, 20, 4, 3], [3, 5, 9, 30, 25])
    computing = StepTime(0.01, prefill_token_s=0.3, running_s=0.01)
    reading = StepTime(0.2, kv_token_s=0.01)
    both = seconds_bound(EngineWorkload(*lengths, rules, (computing, reading)))
    alone = [
        seconds_bound(EngineWorkload(*lengths, rules, (form,))).total_s
        for form in (computing, reading)
    ]
    assert both.total_s > max(alone) * 1.01
    assert sum(both.certificate.mix) == MIX_SCALE


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "preset"), [*product(["fcfs", "svf"], PRESETS)])
def test_runs_of_the_simulator_are_above_it(policy: str, preset: str) -> None:
    """Requests of real size, arrivals, blocks and chunks, under vLLM's rules."""
    rng = np.random.default_rng(3)
    trace = Trace(
        rng.integers(1, 3000, 200),
        rng.integers(1, 300, 200),
        np.sort(rng.uniform(0, 20, 200)),
    )
    rules = EngineModel.vllm(60_000, 16, max_num_seqs=16, max_batched_tokens=512)
    log = simulate(trace, policy, rules, step_time=PRESETS[preset])
    workload = EngineWorkload(
        trace.prefill, trace.decode, rules, (PRESETS[preset],), trace.arrival_s
    )
    total = float((log.completion_s - log.arrival_s).sum())
    found = seconds_bound(workload)
    assert 0.3 * total < found.total_s < total


def test_blocks_matter() -> None:
    """Requests that hold whole blocks leave room for fewer of them."""
    lengths = ([1] * 12, [8] * 12)
    small = seconds_bound(EngineWorkload(*lengths, EngineModel.vllm(32, 1)))
    large = seconds_bound(EngineWorkload(*lengths, EngineModel.vllm(32, 16)))
    assert large.total_s > small.total_s
