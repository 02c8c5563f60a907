"""What the engine does beside starting and decoding: the policy stays in charge.

The engine core is real, and so are its schedulers; only the model is played.
"""

from __future__ import annotations

import logging

import pytest

from benchmarks.engine.parts.played_device import played, step
from online import step_kernels as k
from online.policy import make_policy
from online.requests import RequestTable
from tests.online.executor.conftest import scheduler_of


@pytest.fixture
def start_core(start_llm):
    """Start an engine core with a policy; return it, its scheduler and `request`."""

    def start(policy, *, max_wait_s=None, **arguments):
        options = {"policy": policy}
        if max_wait_s is not None:
            options["max_wait_s"] = max_wait_s
        llm, sampling_params = start_llm(
            run_async=False, options=options, enable_prefix_caching=False, **arguments
        )
        from vllm.v1.request import Request

        def request(name, prompt, answer, **more):
            params = sampling_params(
                max_tokens=answer, ignore_eos=True, detokenize=False
            )
            return Request(name, list(range(prompt)), params, None, **more)

        core = llm.llm_engine.engine_core.engine_core
        return core, scheduler_of(llm), request

    return start


def agree_on_who_runs(scheduler):
    """After a look, ids, prompts and tokens are those of the engine's requests."""
    scheduler.update_table()
    running = scheduler.host.running.ids().tolist()
    assert running == [request.sortedf_id for request in scheduler.running]
    ints = scheduler.host.table.ints
    for request in scheduler.running:
        i = request.sortedf_id
        assert ints[k.PREFILL, i] == request.num_prompt_tokens
        assert ints[k.OUTPUT_TOKENS, i] == request.num_output_tokens
        assert ints[k.COMPUTED, i] == request.num_computed_tokens


class Grammar:
    """Stands for the grammar of a structured output; None while it compiles."""

    grammar = None


def test_nobody_waits_for_a_grammar_of_others(start_core):
    """Room was kept for the one that compiles, and no other request started."""
    from vllm.v1.request import RequestStatus

    core, scheduler, request = start_core(
        "svf", max_num_seqs=4, num_gpu_blocks_override=33
    )
    core.structured_output_manager.accept_tokens = lambda *_: True
    scheduler.get_grammar_bitmask = lambda _: None
    clock = [0.0]
    policy = make_policy("svf", max_wait_s=300.0)
    scheduler.attach(RequestTable(), policy, clock=lambda: clock[0])
    waits = request("structured", 500, 100)
    waits.structured_output_request = Grammar()
    waits.status = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
    with played(core, 0.0, run_async=False):
        scheduler.add_request(waits)
        for n in range(3):
            scheduler.add_request(request(f"plain{n}", 510, 100))
        num_tokens = 0
        for _ in range(201):
            num_tokens += len(step(core))
            clock[0] += 1.0
        assert num_tokens >= 200
        assert scheduler.get_num_unfinished_requests() == 2
        waits.structured_output_request.grammar = object()
        scheduler.add_request(request("late", 510, 100))
        done = []
        while scheduler.has_unfinished_requests():
            outputs = step(core)
            done += [o.request_id for o in outputs if o.finish_reason is not None]
            clock[0] += 1.0
    # It has waited since it came, however long its grammar took.
    assert done.index("structured") < done.index("late")


def test_a_request_that_is_cancelled_while_its_grammar_compiles(start_core):
    from vllm.v1.request import RequestStatus

    core, scheduler, request = start_core("svf")
    waits = request("structured", 10, 5)
    waits.structured_output_request = Grammar()
    waits.status = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
    with played(core, 0.0, run_async=False):
        scheduler.add_request(waits)
        assert len(scheduler.waiting) == len(list(scheduler.waiting)) == 1
        step(core)
        scheduler.finish_requests("structured", RequestStatus.FINISHED_ABORTED)
        step(core)
    assert len(scheduler.waiting) == 0
    assert not scheduler.has_unfinished_requests()


@pytest.mark.parametrize("policy", ["srpt", "las", "svf"])
def test_a_pause_lets_finish_what_runs(start_core, policy):
    """Preemptive policies evicted all of it for others, who may not start."""
    from vllm.v1.core.sched.interface import PauseState

    core, scheduler, request = start_core(policy, max_num_seqs=4)
    with played(core, 0.0, run_async=False):
        for n in range(4):
            scheduler.add_request(request(f"long{n}", 40, 200))
        for _ in range(30):
            step(core)
        for n in range(4):
            scheduler.add_request(request(f"short{n}", 10, 5))
        scheduler.set_pause_state(PauseState.PAUSED_NEW)
        done = []
        while scheduler.has_unfinished_requests():
            outputs = step(core)
            done += [o.request_id for o in outputs if o.finish_reason is not None]
        assert sorted(done) == [f"long{n}" for n in range(4)]
        scheduler.set_pause_state(PauseState.UNPAUSED)
        while scheduler.has_unfinished_requests():
            step(core)
    assert scheduler.host.policy is not None


@pytest.mark.parametrize("policy", ["las", "srpt", "svf"])
def test_prompts_that_come_bit_by_bit(start_core, policy):
    """A session leaves and comes back without an end or a start of its own."""
    core, scheduler, request = start_core(policy, max_wait_s=1000)
    with played(core, 0.0, run_async=False):
        scheduler.add_request(request("queued", 10, 20, resumable=True))
        scheduler.add_request(request("queued", 3, 20, resumable=True))
        scheduler.add_request(request("idle", 10, 3, resumable=True))
        for n in range(3):
            scheduler.add_request(request(f"plain{n}", 40, 80))
        for t in range(60):
            step(core)
            agree_on_who_runs(scheduler)
            if t == 20:
                scheduler.add_request(request("idle", 5, 30, resumable=True))
        scheduler.finish_requests(["queued", "idle"], _aborted())
        while scheduler.has_unfinished_requests():
            step(core)
            agree_on_who_runs(scheduler)
        scheduler.add_request(request("last", 40, 80))
        for _ in range(40):
            step(core)
    assert scheduler.host.policy is not None
    assert not scheduler._cannot_count()  # from now on steps are counted again
    agree_on_who_runs(scheduler)


def _aborted():
    from vllm.v1.request import RequestStatus

    return RequestStatus.FINISHED_ABORTED


def test_drafts_of_several_tokens(start_llm):
    """With speculative decoding a step makes more than one token of an answer."""
    llm, sampling_params = start_llm(
        run_async=False,
        options={"policy": "las"},
        max_num_seqs=2,
        speculative_config={
            "method": "ngram", "num_speculative_tokens": 3,
            "prompt_lookup_max": 3, "prompt_lookup_min": 1,
        },
    )  # fmt: skip
    scheduler, engine = scheduler_of(llm), llm.llm_engine
    for n in range(4):
        params = sampling_params(max_tokens=100, ignore_eos=True, detokenize=False)
        engine.add_request(str(n), {"prompt_token_ids": [7, 8, 9] * 10}, params)
    steps = 0
    while engine.has_unfinished_requests():
        engine.step()
        agree_on_who_runs(scheduler)
        steps += 1
    assert steps < 4 * 100
    assert scheduler.host.policy is not None


@pytest.mark.parametrize("policy", ["las", "svf"])
@pytest.mark.parametrize("fails", [False, True])
def test_kv_that_is_loaded_from_elsewhere(start_core, monkeypatch, policy, fails):
    """Who loads is neither waiting nor running, and others come back meanwhile."""
    from vllm.v1.outputs import KVConnectorOutput

    from benchmarks.engine.parts import played_device

    core, scheduler, request = start_core(policy, max_wait_s=0)
    connector = scheduler.connector = make_connector(scheduler)
    scheduler.recompute_kv_load_failures = True
    arrived = []
    plain = played_device._one_token_each

    def with_arrivals(output, scheduler):
        outcome = plain(output, scheduler)
        if arrived:
            outcome.kv_connector_output = arrived.pop()
        return outcome

    monkeypatch.setattr(played_device, "_one_token_each", with_arrivals)
    with played(core, 0.0, run_async=False):
        scheduler.add_request(request("plain", 40, 200))
        connector.answers["first"] = (64, True)
        scheduler.add_request(request("first", 100, 60))
        step(core)
        step(core)
        failed = {"first"} if fails else None
        arrived.append(
            KVConnectorOutput(finished_recving={"first"}, failed_recving=failed)
        )
        step(core)
        # One comes back from loading just as another begins to.
        connector.answers["first"] = (None, False) if fails else (0, False)
        connector.answers["second"] = (64, True)
        scheduler.add_request(request("second", 100, 5))
        for _ in range(5):
            step(core)
            agree_on_who_runs(scheduler)
        connector.answers["first"] = (0, False)
        arrived.append(KVConnectorOutput(finished_recving={"second"}))
        while scheduler.has_unfinished_requests():
            step(core)
            agree_on_who_runs(scheduler)
    assert scheduler.host.policy is not None


def make_connector(scheduler):
    """Make the scheduler's side of a connector, which answers as it is told."""
    from vllm.distributed.kv_transfer.kv_connector.v1.base import (
        KVConnectorBase_V1,
        KVConnectorMetadata,
    )

    class Connector(KVConnectorBase_V1):
        def __init__(self):
            self.answers = {}
            self._kv_cache_events = None
            self._kv_cache_config = scheduler.kv_cache_config
            self._kv_transfer_config = None

        def get_num_new_matched_tokens(self, request, _):
            return self.answers.get(request.request_id, (0, False))

        def build_connector_meta(self, _):
            return KVConnectorMetadata()

        def request_finished(self, *_):
            return False, None

        def _nothing(self, *_, **__):
            """Do nothing."""

        update_state_after_alloc = start_load_kv = _nothing
        wait_for_layer_load = save_kv_layer = wait_for_save = _nothing

    return Connector()


def test_priorities_are_not_ignored_silently(start_core, caplog):
    """The policy decides, and the log says so."""
    with caplog.at_level(logging.WARNING, "sortedf"):
        start_core("svf", scheduling_policy="priority")
    assert "priorities are ignored" in caplog.text


def test_an_answer_without_any_limit(start_core):
    """It did not fit into the table, and the engine could not take the request."""
    core, scheduler, request = start_core("svf")
    with played(core, 0.0, run_async=False):
        scheduler.add_request(request("endless", 40, 2**70))
        for _ in range(3):
            step(core)
        assert len(scheduler.running) == 1
        scheduler.finish_requests("endless", _aborted())
