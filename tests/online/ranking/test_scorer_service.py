"""Scores from another process: late, wrong or never, and nobody waits for them."""

from __future__ import annotations

import functools
import logging
import os
import sys
import time

import pytest

from online.ranking.scorer_service import (
    KEPT,
    KEPT_LETTERS,
    RankerFolder,
    ScorerService,
    shortened,
)


def by_length():
    """Rate a prompt by its length; refuse empty ones, and print in between."""

    def rate(prompts):
        print("a library that talks", flush=True)
        if any(not len(prompt) for prompt in prompts):
            raise ValueError("an empty prompt")
        return [(float(len(prompt)), 2.0 * len(prompt)) for prompt in prompts]

    return rate


def slow(seconds):
    def rate(prompts):
        time.sleep(seconds)
        return [(1.0, None) for _ in prompts]

    return rate


def wrong(value):
    return lambda prompts: [(value, None) for _ in prompts]


def deadly():
    return lambda prompts: os._exit(3)


def no_scorer():
    raise FileNotFoundError("no such model")


@pytest.fixture
def start():
    services = []

    def make(factory, *arguments, **options):
        service = ScorerService(functools.partial(factory, *arguments), **options)
        services.append(service)
        return service

    yield make
    for service in services:
        service.close()
        assert service._process.poll() is not None
        assert not service._thread.is_alive()


def wait_for(service, count, limit_s=120.0):
    """All that is scored until there are `count`, or the service gives up."""
    scored, end = [], time.monotonic() + limit_s
    while len(scored) < count and service.failed is None:
        assert time.monotonic() < end, scored
        scored += service.take()
        time.sleep(0.005)
    return scored


def test_all_prompts_are_scored_in_their_order(start):
    """Texts and token ids, in more than one batch."""
    service = start(by_length, batch=3)
    prompts = ["x" * n for n in range(1, 9)] + [list(range(n)) for n in range(1, 9)]
    for key, prompt in enumerate(prompts):
        service.submit(key, prompt)
    scored = wait_for(service, len(prompts))
    assert [s.key for s in scored] == list(range(len(prompts)))
    assert [s.score for s in scored] == [float(len(prompt)) for prompt in prompts]
    assert [s.length for s in scored] == [2.0 * len(prompt) for prompt in prompts]


def test_one_bad_prompt_costs_the_others_nothing(start, caplog):
    service = start(by_length)
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        for key, prompt in enumerate(["abc", "", "abcde", "", []]):
            service.submit(key, prompt)
        assert {s.key for s in wait_for(service, 2)} == {0, 2}
        service.submit(9, "z")
        assert wait_for(service, 1)[0].key == 9
    assert caplog.text.count("an empty prompt") == 1  # once for each reason


def test_nobody_waits_for_a_slow_scorer(start):
    """All is handed over long before the first score is there."""
    service = start(slow, 3.0)
    for key in range(200):
        service.submit(key, "word " * 1000)
        assert service.take() == []
    assert wait_for(service, 1)[0].length is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high"])
def test_scores_that_are_none_are_not_taken(start, caplog, value):
    service = start(wrong, value)
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        service.submit(0, "abc")
        end = time.monotonic() + 120
        while "a prompt has no score" not in caplog.text:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert service.take() == []


@pytest.mark.parametrize(
    ("factory", "reason"),
    [(no_scorer, "no such model"), (deadly, "its process ended")],
)
def test_a_scorer_that_fails_says_why_and_leaves_everybody_alone(
    start, caplog, factory, reason
):
    service = start(factory)
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        service.submit(0, "abc")
        assert wait_for(service, 1) == []
        assert reason in service.failed
        service.submit(1, "abc")
    assert reason in caplog.text
    assert service.take() == []


def test_long_prompts_lose_their_middle():
    text = "a" * KEPT_LETTERS + "b" * 10 + "c" * KEPT_LETTERS
    assert shortened(text) == "a" * KEPT_LETTERS + "c" * KEPT_LETTERS
    ids = [*range(KEPT), -1, *range(KEPT)]
    assert shortened(ids) == [*range(KEPT), *range(KEPT)]
    assert shortened("short") == "short"


def test_a_trained_ranker_scores_as_in_this_process(start, tmp_path):
    """From text, from token ids through the engine's tokenizer, and with neither."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from online.executor.tiny_model import write_tiny_model
    from online.ranking import load_ranker
    from tests.online.ranking.tiny import prompts, write_encoder, write_ranker

    folder = write_ranker(write_encoder(tmp_path / "encoder"), tmp_path / "ranker")
    engine = write_tiny_model(tmp_path / "model", 512, tokenizer=True)
    texts = prompts(20, 3)
    ranker = load_ranker(folder)
    scores = ranker.score(texts)
    lengths = ranker.lengths(scores, quantile=0.9)
    service = ScorerService(RankerFolder(str(folder), str(engine), 0.9))
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(engine)
        for key, text in enumerate(texts):
            ids = tokenizer(text)["input_ids"]
            service.submit(key, text if key % 2 else ids)
        scored = wait_for(service, len(texts), limit_s=300)
    finally:
        service.close()
    assert [s.key for s in scored] == list(range(len(texts)))
    assert [s.score for s in scored] == pytest.approx(scores.tolist(), abs=1e-5)
    assert [s.length for s in scored] == pytest.approx(lengths.tolist(), rel=0.1)


def test_the_process_ends_with_the_engine(tmp_path):
    """Even when that is killed: nothing is left behind."""
    import subprocess

    code = (
        "import time\n"
        "from tests.online.ranking.test_scorer_service import *\n"
        "service = ScorerService(by_length)\n"
        "service.submit(0, 'abc')\n"
        "wait_for(service, 1)\n"
        "print(service._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as engine:
        worker = int(engine.stdout.readline())
        os.kill(worker, 0)  # it is there
        engine.kill()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        state = _state_of(worker)
        if state == "Z":  # ended; nobody has asked for its code
            return
        time.sleep(0.05)
    pytest.fail("the scorer's process is still there")


def _state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][0]
    except OSError:
        return None
