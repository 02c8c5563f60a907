"""Plans for engines: what they promise is what an engine does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.planned import PlannedSteps
from online.simulator import simulate
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.plan import Admission, EnginePlan, Follower, most_running
from sortedf.engine_plan.plan_checker import check_plan
from sortedf.engine_plan.planning import engine_methods, plan_engine
from sortedf.engine_plan.starting_orders import by_least_work
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import OversizeError
from sortedf.step_time import PRESETS, StepTime
from sortedf.traces import Trace
from tests.sortedf.engine_plan.brute import least_total
from tests.sortedf.engine_plan.workloads import workloads
from tests.strategies import examples

admissions = st.builds(
    Admission,
    st.integers(0, 3),
    st.sampled_from([1.0, 2.5, 6.0, np.inf]),
)


@pytest.mark.kernel
@examples(300)
@given(workloads(max_requests=8, max_length=9), admissions, st.randoms())
def test_any_order_is_a_plan_that_the_checker_confirms(workload, admission, random):
    """The slow engine admits each request in its step, and comes to the same end."""
    order = list(range(workload.num_requests))
    random.shuffle(order)
    plan = Follower(workload).plan(np.array(order), admission)
    report = check_plan(workload, plan.start.tolist(), plan.order.tolist())
    assert report.feasible, report.violations
    assert report.completion == tuple(plan.completion.tolist())
    assert report.num_steps == plan.num_steps
    assert report.total_s == pytest.approx(plan.total_s)


@pytest.mark.kernel
@examples(150)
@given(workloads(max_requests=8, max_length=9), admissions)
def test_the_step_engine_follows_a_plan_step_for_step(workload, admission):
    """vLLM's rules, run by another engine: the same steps, and nothing is evicted."""
    w = EngineWorkload(
        workload.prefill, workload.decode, workload.rules,
        workload.step_times[:1], workload.arrival_s - workload.arrival_s.min(),
    )  # fmt: skip
    order = np.arange(w.num_requests)
    plan = Follower(w).plan(order, admission)
    log = simulate(
        Trace(w.prefill, w.decode, w.arrival_s),
        PlannedSteps(plan.start, plan.order),
        w.rules,
        step_time=w.step_times[0],
    )
    assert log.start_step.tolist() == (plan.start + 1).tolist()
    assert log.completion_s == pytest.approx(plan.completion_s)
    assert not log.preemptions.any()
    assert log.num_steps == plan.num_steps


@examples(40)
@given(
    workloads(max_requests=3), st.sampled_from(["auto", "fcfs", "svf", "least-work"])
)
def test_no_plan_beats_the_best_of_all(workload, method):
    """Every method is at or above the optimum, and that at or above the bound."""
    best = least_total(workload)
    plan = plan_engine(workload, method).plan
    assert plan.total_s >= best - 1e-9
    assert seconds_bound(workload).total_s <= best


@examples(40)
@given(workloads(max_requests=6, max_length=6))
def test_auto_is_never_worse_than_a_rule(workload):
    """It tries them all."""
    best = plan_engine(workload).plan.total_s
    for method in ("fcfs", "mc-sf", "svf", "sorted-f"):
        assert best <= plan_engine(workload, method).plan.total_s + 1e-9


@examples(150)
@given(workloads(max_requests=6, max_length=6), st.data())
def test_a_plan_with_one_start_changed_is_refused_or_still_one(workload, data):
    """The checker finds one without room, or recomputes what the change is worth."""
    plan = plan_engine(workload, "fcfs").plan
    start = plan.start.tolist()
    i = data.draw(st.integers(0, len(start) - 1))
    start[i] = max(0, start[i] + data.draw(st.sampled_from([-2, -1, 1, 2, 50])))
    report = check_plan(workload, start, plan.order.tolist())
    if report.feasible:
        assert report.total_s >= seconds_bound(workload).total_s
        assert all(
            end > begin for end, begin in zip(report.completion, start, strict=True)
        )
    else:
        assert report.violations
        assert report.total_s is None


def test_a_prompt_longer_than_a_step_is_planned():
    """It is cut, and its answer begins when all of it is done."""
    rules = EngineModel.vllm(100, max_batched_tokens=4)
    plan = plan_engine(EngineWorkload([10], [2], rules)).plan
    assert plan.completion.tolist() == [4]
    whole = EngineModel.vllm(100, max_batched_tokens=4, chunked_prefill=False)
    with pytest.raises(OversizeError, match="prefill at once"):
        EngineWorkload([10], [2], whole)


def test_checker_names_who_would_be_evicted():
    """Two answers that grow beyond the cache: planned by hand, and refused."""
    rules = EngineModel.vllm(8)
    workload = EngineWorkload([2, 2], [4, 4], rules)
    report = check_plan(workload, [0, 0], [0, 1])
    assert not report.feasible
    assert "would be evicted" in report.violations[0]
    assert "step 4" in report.violations[0]


@pytest.mark.parametrize(
    ("start", "order", "message"),
    [
        ([0, 0], [0, 0], "each request from 0 to 1 once"),
        ([0], [0, 1], "2 steps, 0 or more"),
        ([0, -1], [0, 1], "2 steps, 0 or more"),
    ],
)
def test_checker_refuses_what_is_no_plan(start, order, message):
    """Wrong lengths and signs are errors, not violations."""
    workload = EngineWorkload([2, 2], [4, 4], EngineModel.vllm(20))
    with pytest.raises(ValueError, match=message):
        check_plan(workload, start, order)


def test_a_real_mix_is_planned_well_above_no_more_than_it_must_be():
    """Long prompts are held back, so that answers do not wait behind them."""
    rng = np.random.default_rng(1)
    long = rng.random(400) < 0.2
    prefill = np.where(long, rng.integers(2000, 4000, 400), rng.integers(10, 200, 400))
    decode = rng.integers(50, 400, 400)
    rules = EngineModel.vllm(200_000, 16, max_num_seqs=64, max_batched_tokens=2048)
    workload = EngineWorkload(prefill, decode, rules, (PRESETS["a100-llama-3-8b"],))
    fcfs, auto = (plan_engine(workload, name) for name in ("fcfs", "auto"))
    assert auto.plan.total_s < 0.7 * fcfs.plan.total_s
    assert auto.plan.total_s < 1.5 * seconds_bound(workload).total_s
    assert isinstance(auto.plan, EnginePlan)


@examples(60)
@given(workloads(max_requests=6, max_length=6), st.integers(1, 4), st.integers(1, 9))
def test_limits_of_admission_are_kept_and_followed(workload, places, allowance):
    """Never do more requests run than places, and the checker knows of no limits."""
    admission = Admission(allowance=allowance, places=places)
    plan = Follower(workload).plan(np.arange(workload.num_requests), admission)
    assert most_running(plan) <= places
    report = check_plan(workload, plan.start.tolist(), plan.order.tolist())
    assert report.feasible
    assert report.total_s == pytest.approx(plan.total_s)


def test_fewer_places_than_the_engine_has_are_better_where_it_has_too_many():
    """Short steps of few requests beat long ones of all, and `auto` finds out."""
    rng = np.random.default_rng(4)
    rules = EngineModel.vllm(900_000, 16, 1024, 8192)
    lengths = rng.integers(10, 200, 600), rng.integers(100, 300, 600)
    workload = EngineWorkload(*lengths, rules, (PRESETS["a100-llama-3-8b"],))
    follower, order = Follower(workload), by_least_work(workload)
    many, few = (
        follower.total_s(order, Admission(places=places)) for places in (np.inf, 300)
    )
    assert few < 0.9 * many
    assert plan_engine(workload).plan.total_s < 1.02 * few


def test_every_list_rule_is_a_method():
    """Each is placed by the engine's own rules, whatever model it was made for."""
    rules = EngineModel.vllm(40, max_num_seqs=2, max_batched_tokens=4)
    workload = EngineWorkload([9, 3, 5], [5, 2, 8], rules)
    for method in set(engine_methods()) - {"sorted-lp"}:
        plan = plan_engine(workload, method).plan
        assert check_plan(workload, plan.start, plan.order).feasible
    with pytest.raises(ValueError, match="choose one of: auto, least-work, "):
        plan_engine(workload, "none")


def test_the_same_seed_gives_the_same_plan():
    """Without a time limit nothing depends on the clock."""
    rng = np.random.default_rng(2)
    rules = EngineModel.vllm(3000, max_num_seqs=8, max_batched_tokens=64)
    workload = EngineWorkload(
        rng.integers(1, 200, 60), rng.integers(1, 50, 60), rules,
        (StepTime(0.01, 0.001, 0.001, 1e-6),),
    )  # fmt: skip
    one, two = (plan_engine(workload, seed=3).plan for _ in range(2))
    assert one.start.tolist() == two.start.tolist()
