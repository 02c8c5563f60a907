"""The scheduler class inside vLLM: features on, hints missing, policies failing."""

from __future__ import annotations

import logging
import os
import random

import numpy as np
import pytest

from benchmarks.engine.parts.played_device import played, step
from online import step_kernels as k
from online.calibration import calibrate, read_samples
from online.executor.prompts import random_prompt
from online.executor.scheduler_options import SchedulerOptions
from online.policy import make_policy
from online.processes import SAFE_PATH
from online.requests import RequestTable
from online.state import NOTHING, Decision
from sortedf import Instance
from sortedf.step_time import StepTime
from tests.online.executor.conftest import scheduler_of


def mixed_requests(sampling_params, count):
    """Prompts that share a prefix or not; lengths hinted, hinted wrongly, or not."""
    draw = random.Random(1)
    prefix = random_prompt(999, 96)
    prompts, params = [], []
    for i in range(count):
        own = random_prompt(i, draw.choice([5, 40, 300]))
        prompts.append({"prompt_token_ids": prefix + own if i % 2 else own})
        most = draw.choice([3, 30, 150])
        hint = [most, "much", -1, None, 10**9, float("nan")][i % 6]
        params.append(
            sampling_params(
                max_tokens=most,
                ignore_eos=i % 3 > 0,
                stop_token_ids=list(range(10)) if i % 3 == 0 else None,
                detokenize=False,
                extra_args={"predicted_tokens": hint} if i % 7 else None,
            )
        )
    return prompts, params


@pytest.mark.parametrize(
    ("run_async", "policy", "tokens"),
    [(False, "svf", 512), (True, "svf", 512), (True, "fcfs", 64)],
)
def test_prefix_caching_and_chunks(start_llm, run_async, policy, tokens):
    """Both on at once in both classes, and every answer has its length."""
    llm, sampling_params = start_llm(
        run_async=run_async,
        options={"policy": policy, "max_wait_s": 30},
        max_num_batched_tokens=tokens,
        enable_prefix_caching=True,
    )
    prompts, params = mixed_requests(sampling_params, 120)
    outputs = llm.generate(prompts, params, use_tqdm=False)
    assert len(outputs) == 120
    for output, wanted in zip(outputs, params, strict=True):
        output_tokens = len(output.outputs[0].token_ids)
        assert output.finished
        assert output_tokens == wanted.max_tokens or (
            not wanted.ignore_eos and output_tokens >= 1
        )
    scheduler = scheduler_of(llm)
    assert scheduler.host.policy is not None
    assert scheduler.get_num_unfinished_requests() == 0
    llm.generate(prompts[:1], params[:1], use_tqdm=False)
    assert scheduler.host.table.num_ids <= 120  # a server must not remember them all


@pytest.mark.parametrize(("policy", "tokens"), [("svf", 512), ("fcfs", 48)])
def test_the_table_knows_what_the_engine_knows(start_llm, policy, tokens):
    """Tokens are counted late, steps by steps; whenever one looks, they are right."""
    llm, sampling_params = start_llm(
        run_async=False,
        options={"policy": policy},
        max_num_batched_tokens=tokens,
        max_num_seqs=32,
        enable_prefix_caching=True,
        num_gpu_blocks_override=41,
    )
    scheduler, engine = scheduler_of(llm), llm.llm_engine
    prompts, params = mixed_requests(sampling_params, 60)
    for i, (prompt, own) in enumerate(zip(prompts, params, strict=True)):
        engine.add_request(str(i), prompt, own)
    steps = looks = 0
    while engine.has_unfinished_requests():
        engine.step()
        steps += 1
        if steps % 3:
            continue
        scheduler.host.running.catch_up()
        ints = scheduler.host.table.ints
        looks += len(scheduler.running)
        for request in scheduler.running:
            i = request.sortedf_id
            assert ints[k.OUTPUT_TOKENS, i] == request.num_output_tokens
            assert ints[k.COMPUTED, i] == request.num_computed_tokens
            assert ints[k.PREFILL, i] == request.num_prompt_tokens
    assert looks > 100
    assert scheduler.host.policy is not None
    assert scheduler.host.table.num_ids <= 60


@pytest.mark.parametrize("policy", ["fcfs", "svf", "sorted-f-online", "srpt", "las"])
def test_async_scheduling(start_llm, policy):
    """A step is scheduled before the tokens of the one before it are known.

    vLLM switches async scheduling off on the CPU (`platforms/cpu.py`), so its engine
    core runs as on a GPU here, two steps under way, but with a device that is played.
    """
    llm, sampling_params = start_llm(
        run_async=True,
        options={"policy": policy},
        max_num_batched_tokens=64,
        enable_prefix_caching=True,
    )
    scheduler, core = scheduler_of(llm), llm.llm_engine.engine_core.engine_core
    prompts, params = mixed_requests(sampling_params, 60)
    for i, (prompt, own) in enumerate(zip(prompts, params, strict=True)):
        llm.llm_engine.add_request(str(i), prompt, own)
    wanted = {r: request.max_tokens for r, request in scheduler.requests.items()}
    output_tokens = dict.fromkeys(wanted, 0)
    steps, evicted = 0, []
    preempt = scheduler._preempt_request

    def noted(request, *rest, **named):
        evicted.append(request)
        preempt(request, *rest, **named)

    scheduler._preempt_request = noted
    with played(core, 0.0, run_async=True):
        while scheduler.has_requests() or core.batch_queue:
            for output in step(core):
                output_tokens[output.request_id] += len(output.new_token_ids)
            steps += 1
            assert len(core.batch_queue) <= 1  # what it waits for is taken out
    assert output_tokens == wanted
    assert steps < 5000
    assert evicted or policy not in ("fcfs", "srpt", "las")
    assert scheduler.host.policy is not None


def test_lengths_are_learned_from_who_is_done(start_llm):
    """Requests that say nothing are expected to be as long as the others were."""
    llm, sampling_params = start_llm(
        run_async=False,
        options={"policy": "svf", "predictor": {"name": "history", "least": 10}},
        max_num_batched_tokens=512,
    )
    scheduler = scheduler_of(llm)
    short = sampling_params(max_tokens=9, ignore_eos=True, detokenize=False)
    long = sampling_params(max_tokens=500, ignore_eos=True, detokenize=False)
    predicted = sampling_params(
        max_tokens=500, detokenize=False, extra_args={"predicted_tokens": 70}
    )
    prompt = {"prompt_token_ids": random_prompt(0, 20)}
    llm.generate([prompt] * 10, short, use_tqdm=False)
    for name, params in (("long", long), ("predicted", predicted), ("short", short)):
        llm.llm_engine.add_request(name, prompt, params)
    predicted = scheduler.host.table.ints[k.PREDICTED]
    expected = {
        request.max_tokens: int(predicted[request.sortedf_id])
        for request in scheduler.requests.values()
        if request.sampling_params.extra_args is None
    }
    assert expected == {500: 9, 9: 9}
    hinted = [r for r in scheduler.requests.values() if r.sampling_params.extra_args]
    assert scheduler.host.table.ints[k.PREDICTED, hinted[0].sortedf_id] == 70
    llm.llm_engine.abort_request(["long", "predicted", "short"])


def test_a_liar_is_known_by_its_answers(start_llm):
    """In the engine, too: it says 1, and is expected to be as long as before."""
    llm, sampling_params = start_llm(
        run_async=False,
        options={"policy": "svf", "trust_hints": "corrected"},
        max_num_batched_tokens=512,
    )
    scheduler = scheduler_of(llm)
    prompt = {"prompt_token_ids": random_prompt(0, 20)}

    def params(client, hint, most):
        return sampling_params(
            max_tokens=most, ignore_eos=True, detokenize=False,
            extra_args={"predicted_tokens": hint, "client": client},
        )  # fmt: skip

    known = [params("liar", 1, 80)] * 20 + [params("honest", 10, 10)] * 20
    llm.generate([prompt] * 40, known, use_tqdm=False)
    table = scheduler.host.table
    for client, hint in (("liar", 1), ("honest", 10)):
        llm.llm_engine.add_request(client, prompt, params(client, hint, 500))
    (liar, honest) = (
        int(table.ints[k.PREDICTED, request.sortedf_id])
        for request in scheduler.requests.values()
    )
    assert 70 <= liar <= 85
    assert 10 <= honest <= 14
    output_tokens = []
    while len(output_tokens) < 30:  # the honest one is longer this time: raised at once
        llm.llm_engine.step()
        honest = [r for r in scheduler.requests.values() if "honest" in r.request_id]
        output_tokens.append(honest[0].num_output_tokens)
        predicted = int(table.ints[k.PREDICTED, honest[0].sortedf_id])
        assert predicted >= output_tokens[-1]
    assert predicted > 14
    llm.llm_engine.abort_request(["liar", "honest"])
    assert scheduler.host.policy is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predictor": "oracle"}, "unknown predictor 'oracle'"),
        ({"predictor": {"least": 3}}, "must have a name"),
        ({"predictor": {"name": "history", "least": "few"}}, "least = 'few'"),
        ({"patience": 3}, "has no option 'patience'"),
        ({"max_wait_s": "long"}, "max_wait_s = 'long'"),
        ({"max_predicted": "abc"}, "max_predicted = 'abc' but must be an integer"),
        ({"max_predicted": 0}, "max_predicted = 0 but must be at least 1"),
        ({"ranker_quantile": 7}, "ranker_quantile = 7 but must be above 0"),
        ({"trust_hints": "some"}, "trust_hints = 'some' but must be one of: on"),
        ({"trust_hints": "off", "predictor": "history"}, "needs neither a predictor"),
        ({"policy": 3}, "policy = 3 but must be a string"),
        ({"step_time": [0.025]}, r"step_time = \[0.025\] but must be a number of"),
        ({"step_time": "b100-gpt"}, "step time 'b100-gpt' is no number of seconds"),
        ({"step_time": -1}, "constant_s = -1 but must be a number"),
        ({"step_time": {"seconds": 1}}, "has no option 'seconds'"),
        ({"step_time": {"constant_s": "1"}}, "constant_s = '1' but must be a number"),
    ],
)
def test_options_that_are_wrong_are_named(change, words):
    def start():
        options = SchedulerOptions.of({"policy": "svf", **change})
        options.make_policy()
        options.make_predictor(100)

    with pytest.raises(ValueError, match=words):
        start()


@pytest.mark.parametrize("given", [0.025, "0.025", {"constant_s": 0.025}])
def test_a_step_time_is_given_in_any_form(given):
    assert SchedulerOptions.of({"step_time": given}).step_time == StepTime(0.025)


def test_steps_are_measured_while_it_serves(start_llm, tmp_path):
    """The model, its line and the step log; then a clock of 10 ms, played by hand."""
    path = tmp_path / "steps.jsonl"
    llm, sampling_params = start_llm(
        run_async=False,
        options={"policy": "svf-aged", "step_log": str(path)},
        max_num_batched_tokens=512,
        max_num_seqs=32,
    )
    scheduler, core = scheduler_of(llm), llm.llm_engine.engine_core.engine_core
    prompts, params = mixed_requests(sampling_params, 60)
    llm.generate(prompts, params, use_tqdm=False)
    seen = read_samples(path)
    assert len(seen.duration_s) > 100
    typical = np.median(seen.counts, axis=0)
    found = scheduler.host.last.step_time
    assert found.seconds(*typical) == pytest.approx(np.median(seen.duration_s), rel=0.5)
    assert calibrate(seen).num_steps == len(seen.duration_s)

    clock, started = [0.0], None
    scheduler.attach(RequestTable(), make_policy("svf-aged"), clock=lambda: clock[0])
    draw = random.Random(5)
    with played(core, 0.0, run_async=False):
        for j in range(2000):
            long_one = j == 300
            if j % 3 == 0:
                most = 130 if long_one else draw.randint(60, 120)
                prompt = {"prompt_token_ids": random_prompt(j, 130 if long_one else 20)}
                own = sampling_params(
                    max_tokens=most, ignore_eos=True, detokenize=False
                )
                llm.llm_engine.add_request(str(j), prompt, own)
            step(core)
            clock[0] += 0.01
            running = {r.num_prompt_tokens for r in scheduler.running}
            if 130 in running:
                started = j
                break
        llm.llm_engine.abort_request([str(j) for j in range(0, 2000, 3)])
    assert started is not None
    assert scheduler.host.policy is not None


class Failing:
    """Works for some answers, then raises or starts nothing for ever."""

    def __init__(self, raises):
        self.raises = raises
        self.inner = make_policy("svf")
        self.steps = 0

    def decide(self, state):
        self.steps += 1
        if self.steps <= 3:
            return self.inner.decide(state)
        if self.raises == "an error":
            raise ZeroDivisionError("a mistake in a policy")
        if self.raises == "strangers":
            return Decision(start=[999])
        return NOTHING


@pytest.mark.parametrize("raises", ["an error", "strangers", "nothing"])
def test_a_policy_that_fails_fails_no_request(real_engine, caplog, raises):
    """First come, first served from then on, and the log says why."""
    instance = Instance([40] * 60, [20] * 60, 10_000)
    table = RequestTable.of_instance(instance)
    engine = real_engine(table, Failing(raises), kv_budget=512, max_model_len=512)
    for i in range(60):
        engine.add(i)
    finished = []
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        while engine.num_unfinished:
            finished += engine.step(float(len(finished))).finished
    assert sorted(finished) == list(range(60))
    words = {
        "an error": "a mistake in a policy",
        "strangers": "it starts requests that do not wait",
        "nothing": "starts no request",
    }
    assert words[raises] in caplog.text


def test_cancelled_requests_leave_a_real_engine(real_engine):
    """One that runs and one that waits; the others finish."""
    instance = Instance([40] * 30, [20] * 30, 10_000)
    table = RequestTable.of_instance(instance)
    engine = real_engine(table, make_policy("svf"), kv_budget=512, max_model_len=512)
    for i in range(30):
        engine.add(i)
    engine.step(0.0)
    engine.cancel(0)
    engine.cancel(29)
    finished = []
    while engine.num_unfinished:
        finished += engine.step(1.0).finished
    assert sorted(finished) == list(range(1, 29))


def test_an_engine_leaves_the_import_path_of_other_processes_alone(real_engine):
    """`PYTHONSAFEPATH` is for the engine's own processes only."""
    assert SAFE_PATH not in os.environ
    table = RequestTable.of_instance(Instance([4], [2], 512))
    real_engine(table, make_policy("svf"), kv_budget=512, max_model_len=512)
    assert SAFE_PATH not in os.environ


def test_a_step_that_raises_says_what_is_left(real_engine):
    """The engine's own error, in one line, with what was not done."""
    from online.executor.vllm_engine import EngineError

    instance = Instance([40] * 3, [20] * 3, 10_000)
    engine = real_engine(
        RequestTable.of_instance(instance),
        make_policy("svf"),
        kv_budget=512,
        max_model_len=512,
    )
    for i in range(3):
        engine.add(i)
    engine.step(0.0)

    def broken(*args, **kwargs):
        raise RuntimeError("out of order")

    executor = engine._llm.engine_core.engine_core.model_executor
    executor.execute_model = broken
    with pytest.raises(EngineError, match=r"3 requests unfinished.*out of order"):
        engine.step(1.0)


def test_a_request_that_ends_early_makes_room_in_the_next_step(real_engine):
    """Predicted to fill the cache for 400 steps; the next starts when it is over."""
    instance = Instance([60, 60], [10, 10], 10_000)
    table = RequestTable.of_instance(instance, predicted=[400, 400])
    engine = real_engine(table, make_policy("svf"), kv_budget=512, max_model_len=512)
    engine.add(0)
    engine.add(1)
    started = {}
    step = 0
    while engine.num_unfinished:
        step += 1
        for i in engine.step(float(step)).started:
            started[i] = step
    assert started == {0: 1, 1: 11}
