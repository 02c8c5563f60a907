"""One run: repeatable, refused where it cannot be, and right about seconds."""

from __future__ import annotations

import numpy as np
import pytest

from online.arrivals import arrive
from online.driver import StalledError
from online.log_file import write_log
from online.metrics import ttlt_s
from online.policy import POLICIES, make_policy
from online.simulator import simulate
from online.state import NOTHING
from sortedf import Instance, OversizeError
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.step_time import PRESETS, StepTime
from sortedf.traces import Trace

RULES = EngineModel.vllm(4096, block_size=16, max_num_seqs=64, max_batched_tokens=512)
MODEL = PRESETS["a100-llama-3-8b"]
CHAT = arrive(generate("chat", 40, seed=1), "poisson", rate=8.0, seed=1)
BY_NAME = sorted(name for name, kind in POLICIES.items() if not kind.needs_plan)
"""Policies that need nothing but requests."""


@pytest.mark.parametrize("policy", BY_NAME)
def test_the_same_run_byte_by_byte(policy, tmp_path):
    """Twice from fresh objects; and every invariant holds."""
    files = []
    for k in range(2):
        log = simulate(CHAT, policy, RULES, step_time=MODEL)
        path = tmp_path / f"{k}.jsonl"
        write_log(log, path)
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert log.completed.all()


@pytest.mark.parametrize("policy", BY_NAME)
def test_with_hardly_any_load_all_policies_are_alike(policy):
    """Every arrival finds the engine empty."""
    few = Trace(CHAT.prefill[:12], CHAT.decode[:12])
    slow = arrive(few, "batches", rate=1e-4, size=1)
    log = simulate(slow, policy, RULES, step_time=MODEL)
    alone = simulate(slow, "fcfs", RULES, step_time=MODEL)
    assert ttlt_s(log) == pytest.approx(ttlt_s(alone))
    assert log.preemptions.sum() == 0


def test_an_instances_arrivals_are_steps():
    """Of the constant's length; a trace's are seconds."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10, [0, 4, 4])
    log = simulate(instance, "fcfs", EngineModel.vllm(10), step_time=StepTime(0.5))
    assert log.arrival_s.tolist() == [0, 2, 2]
    assert log.completion_s.tolist() == [1.5, 3.0, 2.5]


def test_predictions_and_scores_are_what_a_policy_sees():
    """Shortest first by what was predicted, not by what is true."""
    trace = Trace([4, 4], [5, 2])
    rules = EngineModel.vllm(9, max_num_seqs=1)
    log = simulate(trace, "mc-sf", rules, predicted=[1, 4])
    assert log.start_s.tolist() == [0, 5]
    assert simulate(trace, "mc-sf", rules).start_s.tolist() == [2, 0]
    log = simulate(trace, "pars", rules, score=[0.1, 0.2])
    assert log.start_s.tolist() == [0, 5]


def test_a_wrong_prediction_by_ten_times_both_ways():
    """No request is lost, whether answers are ten times as long or as short."""
    for factor in (0.1, 10.0):
        wrong = np.maximum(1, np.rint(CHAT.decode * factor)).astype(np.int64)
        for policy in ("svf", "mc-sf", "srpt"):
            log = simulate(CHAT, policy, RULES, step_time=MODEL, predicted=wrong)
            assert log.completed.all()


def test_who_can_never_run_is_named():
    """By row, with the reason; or left out and named in the log."""
    trace = Trace([5, 50, 6], [3, 2, 1], row=[2, 3, 4])
    rules = EngineModel.vllm(10)
    with pytest.raises(OversizeError, match=r"1 of 3 .*row 3 needs 51 KV") as caught:
        simulate(trace, "fcfs", rules)
    assert caught.value.request_ids == (1,)
    log = simulate(trace, "fcfs", rules, drop_oversize=True)
    assert list(log.refused) == [1]
    assert log.completed.tolist() == [True, False, True]
    with pytest.raises(OversizeError, match="none is left"):
        simulate(Trace([50], [2]), "fcfs", rules, drop_oversize=True)
    with pytest.raises(OversizeError, match="request 0 needs"):
        simulate(Instance([9], [1], 10), "fcfs", EngineModel.vllm(5))


def test_mistakes():
    """Names, options and lengths of arrays."""
    with pytest.raises(ValueError, match="unknown policy 'magic'; choose one of: "):
        simulate(CHAT, "magic", RULES)
    with pytest.raises(ValueError, match="no option 'speed'"):
        simulate(CHAT, "fcfs", RULES, options={"speed": 1})
    with pytest.raises(ValueError, match="predicted has shape"):
        simulate(CHAT, "fcfs", RULES, predicted=[1])
    with pytest.raises(ValueError, match="given by its name"):
        simulate(CHAT, make_policy("fcfs"), RULES, max_wait_s=3.0)


def test_a_policy_that_starts_nothing():
    """Said at once, instead of a simulation without end."""

    class Idle:
        def decide(self, state):
            return NOTHING

    with pytest.raises(StalledError, match="starts no request"):
        simulate(CHAT, Idle(), RULES)


def test_identical_arrivals_are_served_in_file_order():
    """Ties have an order, and it is not chance."""
    trace = Trace([4] * 6, [5] * 6)
    log = simulate(trace, "svf", EngineModel.vllm(8))
    assert log.start_s.tolist() == [0, 5, 10, 15, 20, 25]


def test_on_step_sees_every_step():
    """For a live view."""
    seen = []
    log = simulate(
        CHAT,
        "fcfs",
        RULES,
        step_time=MODEL,
        on_step=lambda _, end_s: seen.append(end_s),
    )
    assert seen == log.steps.end_s.tolist()
