"""PARS in a real engine: it starts requests in the order of their scores."""

from __future__ import annotations

import functools
import logging
import time

import numpy as np
import pytest

from online.driver import drive
from online.policy import make_policy
from online.ranking.scorer_service import ScorerService
from online.requests import RequestTable
from online.step_engine import StepEngine
from tests.online.executor.conftest import scheduler_of
from tests.online.ranking.test_scorer_service import by_length, slow
from tests.online.ranking.tiny import prompts, write_encoder, write_ranker

OPTIONS = {"policy": "pars", "starvation_s": 1e6}


def texts_and_lengths(count):
    """Prompts of known words and how long their answers are to be."""
    return prompts(count, 5), np.random.default_rng(5).integers(3, 40, count)


def add_all(llm, sampling_params, texts, lengths):
    """Let requests come one after the other; the engine numbers them as they do."""
    for i, (text, length) in enumerate(zip(texts, lengths.tolist(), strict=True)):
        params = sampling_params(max_tokens=length, ignore_eos=True, detokenize=False)
        llm.llm_engine.add_request(str(i), text, params)


def run_all(llm):
    """Run to the end; return the ids in the order in which they started."""
    scheduler, started = scheduler_of(llm), []
    while llm.llm_engine.has_unfinished_requests():
        llm.llm_engine.step()
        # In one step they are behind each other in the engine's list.
        seen = set(started)
        started += [r.sortedf_id for r in scheduler.running if r.sortedf_id not in seen]
    return started


def order_in_simulator(table, rules):
    """Ids in the order in which the policy starts them in the step engine."""
    policy = make_policy(OPTIONS["policy"], starvation_s=OPTIONS["starvation_s"])
    order = []
    drive(
        StepEngine(table, rules, policy),
        on_step=lambda record, end_s: order.extend(record.started),
    )
    return list(dict.fromkeys(order))


def test_requests_start_in_the_order_of_the_simulator(start_llm, tmp_path):
    """A trained ranker's folder in the configuration; it reads the engine's tokens."""
    from online.ranking import load_ranker

    folder = write_ranker(write_encoder(tmp_path / "encoder"), tmp_path / "ranker")
    llm, sampling_params = start_llm(
        run_async=False,
        options={**OPTIONS, "ranker": str(folder)},
        tokenizer=True,
        max_num_batched_tokens=512,
        max_num_seqs=6,
        num_gpu_blocks_override=33,
    )
    scheduler = scheduler_of(llm)
    texts, lengths = texts_and_lengths(40)
    add_all(llm, sampling_params, texts, lengths)
    end = time.monotonic() + 300
    while len(scheduler.expectations.scores._scored) < 40:
        assert scheduler.expectations.scores.failed is None
        assert time.monotonic() < end
        time.sleep(0.02)
    prefill = np.array([r.num_prompt_tokens for r in scheduler.requests.values()])
    started = run_all(llm)
    score = scheduler.host.table.score[:40].copy()
    assert score == pytest.approx(load_ranker(folder).score(texts), abs=1e-5)
    table = RequestTable.of_arrays(prefill, lengths, np.zeros(40), score=score)
    assert started == order_in_simulator(table, scheduler.rules)
    assert started != list(range(40))


def test_scores_that_come_late_are_used_when_they_come(start_llm):
    """First by arrival; once they are there, by score; and none waited for them."""
    llm, sampling_params = start_llm(
        run_async=False, options=OPTIONS, tokenizer=True, max_num_batched_tokens=512,
        max_num_seqs=2,
    )  # fmt: skip
    scheduler = scheduler_of(llm)
    scheduler.expectations.scores = ScorerService(functools.partial(by_length))
    texts, _ = texts_and_lengths(30)
    lengths = np.full(30, 10)
    held, submit = [], scheduler.expectations.scores.submit
    scheduler.expectations.scores.submit = lambda *asked: held.append(asked)
    add_all(llm, sampling_params, texts, lengths)
    scheduler.expectations.scores.submit = submit
    for _ in range(25):  # a scorer that is busy with something else
        llm.llm_engine.step()
    early = {request.sortedf_id for request in scheduler.waiting}
    assert early == set(range(30 - len(early), 30))
    for asked in held:
        submit(*asked)
    end = time.monotonic() + 120
    while len(scheduler.expectations.scores._scored) < 30:
        assert time.monotonic() < end
        time.sleep(0.01)
    late = [i for i in run_all(llm) if i in early]
    tokens = [len(texts[i]) for i in late]
    assert tokens == sorted(tokens)
    assert late != sorted(late)


@pytest.mark.parametrize("trouble", ["no folder", "too slow"])
def test_a_scorer_in_trouble_fails_no_request(start_llm, caplog, trouble, tmp_path):
    """Then all go by arrival, and the log says why."""
    ranker = {"ranker": str(tmp_path / "nothing")} if trouble == "no folder" else {}
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        llm, sampling_params = start_llm(
            run_async=False, options={**OPTIONS, **ranker}, tokenizer=True,
            max_num_batched_tokens=512, max_num_seqs=4,
        )  # fmt: skip
        scheduler = scheduler_of(llm)
        if trouble == "too slow":
            slow_one = functools.partial(slow, 100.0)
            scheduler.expectations.scores = ScorerService(slow_one)
        texts, lengths = texts_and_lengths(20)
        add_all(llm, sampling_params, texts, lengths)
        started = run_all(llm)
        assert started == list(range(20))
        assert scheduler.host.policy is not None
        if trouble == "no folder":
            end = time.monotonic() + 300
            while scheduler.expectations.scores.failed is None:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert "prompts are no longer scored" in caplog.text
            assert "nothing" in caplog.text
