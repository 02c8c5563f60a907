"""Least own work first: as the planner ranks, and as `svf` where only KV counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from online.policies.least_work import OwnWork
from online.policy import make_policy
from online.requests import RequestTable
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.starting_orders import by_least_work
from sortedf.generator import generate
from sortedf.step_time import PRESETS, StepTime
from tests.sortedf.engine_plan.workloads import workloads
from tests.strategies import examples


@examples(100)
@given(workloads(max_requests=8, max_length=9))
def test_it_ranks_as_the_planner_does(workload):
    """Where prompts and decoded tokens cost alike and blocks are tokens, exactly."""
    engine = EngineModel.vllm(30, 1, 4, 16)
    time = StepTime(0.5, 0.1, 0.1, 0.01)
    w = type(workload)(workload.prefill, workload.decode, engine, (time,))
    table = RequestTable.of_arrays(w.prefill, w.decode, w.arrival_s)
    ids = np.arange(w.num_requests)
    rank = OwnWork(engine, time)(table.view, ids)
    in_plan = rank[by_least_work(w)]
    assert in_plan == pytest.approx(np.sort(rank))


def test_with_unit_steps_and_no_caps_it_is_svf():
    """Then all that a request costs is its volume."""
    trace = generate("mix", 200, seed=4)
    engine = EngineModel(20_000)
    one, two = (simulate(trace, name, engine) for name in ("svf", "least-work"))
    assert one.completion_step.tolist() == two.completion_step.tolist()


def test_in_seconds_it_is_better_than_volumes():
    """Long prompts cost time that volumes do not see."""
    trace = generate("mix", 400, long_share=0.2, seed=4)
    engine = EngineModel.vllm(400_000, 16, 64, 8192)
    time = PRESETS["a100-llama-3-8b"]
    svf, work = (
        simulate(trace, name, engine, step_time=time).completion_s.mean()
        for name in ("svf", "least-work")
    )
    assert work < 0.98 * svf


def test_bad_options_are_refused_before_a_run():
    """As of every list policy."""
    with pytest.raises(ValueError, match="must be 'engine' or 'look-ahead'"):
        make_policy("least-work", admission="never")
