"""Scores from another process: late, wrong or never, and no step waits for them."""

from __future__ import annotations

import functools
import json
import logging
import os
import subprocess
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


def test_all_prompts_are_scored(start):
    """Texts and token ids, in more than one batch."""
    service = start(by_length, batch=3)
    prompts = ["x" * n for n in range(1, 9)] + [list(range(n)) for n in range(1, 9)]
    for key, prompt in enumerate(prompts):
        service.submit(key, prompt)
    scored = sorted(wait_for(service, len(prompts)))
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


def per_prompt(seconds):
    """Rate so that each prompt takes its time, and a batch that of all its prompts."""

    def rate(prompts):
        time.sleep(seconds * len(prompts))
        return [(1.0, None) for _ in prompts]

    return rate


def ready(service):
    """Wait until the scorer has been made."""
    service.submit(-1, "first")
    assert [s.key for s in wait_for(service, 1)] == [-1]


def test_requests_that_have_ended_delay_nobody(start):
    """4,000 prompts came and went within a second: the next score was 20 s late."""
    service = start(per_prompt, 0.005)
    ready(service)
    begin = time.monotonic()
    for key in range(4_000):
        service.submit(key, list(range(500)))
        service.cancel(key)
    assert service.num_waiting == 0
    assert time.monotonic() - begin < 1
    service.submit(4_000, "honest")
    assert [s.key for s in wait_for(service, 1)] == [4_000]
    assert time.monotonic() - begin < 2
    assert service.num_dropped == 0


def test_the_newest_goes_first_however_many_wait(start):
    """Also where the flood stays: by no more than a batch or two."""
    service = start(per_prompt, 0.005)
    ready(service)
    for key in range(4_000):
        service.submit(key, "flood")
    begin = time.monotonic()
    service.submit(4_000, "honest")
    scored = []
    while 4_000 not in [s.key for s in scored]:
        scored += wait_for(service, 1)
    assert time.monotonic() - begin < 2
    assert len(scored) <= 3 * service._batch


def test_what_waits_is_bounded(start, caplog):
    """20,000 long prompts held 1.5 GB; the oldest goes without, which is said once."""
    service = start(slow, 600.0, most_waiting=100)
    with caplog.at_level(logging.WARNING, logger="sortedf"):
        for key in range(20_000):
            service.submit(key, [key] * 5_000)
    assert service.num_waiting == 100
    # Those that were being rated, if the scorer was ready by then, were not dropped.
    assert 19_900 - service._batch <= service.num_dropped <= 19_900
    assert list(service._waiting) == list(range(19_900, 20_000))
    assert caplog.text.count("more than 100 prompts wait") == 1


def test_a_score_that_comes_too_late_is_forgotten(start):
    """Its request ended while it was being rated."""
    service = start(slow, 0.5)
    ready(service)
    service.submit(1, "gone")
    while service.num_waiting:
        time.sleep(0.001)
    service.cancel(1)
    service.submit(2, "stays")
    assert [s.key for s in wait_for(service, 1)] == [2]


def test_nothing_in_the_current_folder_is_run(tmp_path):
    """A server was started there, with a ranker: what lay there was run."""
    plant(tmp_path)
    code = (
        "from functools import partial\n"
        "from online.ranking.scorer_service import ScorerService\n"
        "import time, os, sys, textwrap\n"
        "sys.path[:0] = ['', os.getcwd()]\n"  # as python -m has it
        "service = ScorerService(partial(textwrap.wrap, 'no scorer'))\n"
        "service.submit(0, 'x')\n"
        "while not (service.failed or service._reasons): time.sleep(0.01)\n"
        "assert service.failed is None, service.failed\n"
        "service.close()\n"
    )
    run_in(tmp_path, "-P", "-c", code)


@pytest.mark.slow
def test_nor_by_a_parallel_sweep(tmp_path):
    """The workers of joblib are started by `python -m`, and others by `-c`."""
    pytest.importorskip("joblib")
    plant(tmp_path)
    (tmp_path / "trace.csv").write_text("prefill_tokens,decode_tokens\n3,2\n4,5\n")
    command = ("simulate", "trace.csv", "--kv-budget", "20", "--policy", "fcfs,svf")
    run_in(tmp_path, "-P", "-m", "sortedf", *command, "--jobs", "2", "--json")


def plant(folder):
    """Put files there that say when they are run."""
    says = f"open({str(folder / 'was-run')!r}, 'a').write(__file__ + '\\n')\n"
    for name in ("pickle", "multiprocessing", "joblib", "numpy", "sitecustomize"):
        (folder / f"{name}.py").write_text(says)
    for package in ("online", "sortedf"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(says)


def run_in(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "was-run").exists(), (folder / "was-run").read_text()


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


@pytest.mark.slow
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
    service = ScorerService(RankerFolder(str(folder), (str(engine), None), 0.9))
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(engine)
        for key, text in enumerate(texts):
            ids = tokenizer(text)["input_ids"]
            service.submit(key, text if key % 2 else ids)
        scored = sorted(wait_for(service, len(texts), limit_s=300))
    finally:
        service.close()
    assert [s.key for s in scored] == list(range(len(texts)))
    assert [s.score for s in scored] == pytest.approx(scores.tolist(), abs=1e-5)
    assert [s.length for s in scored] == pytest.approx(lengths.tolist(), rel=0.1)


def test_the_engine_tokenizer_is_of_the_engine_commit(hub, encoder, tmp_path):
    """Token ids mean what they mean at the engine's commit, not at the newest one."""
    from tests.online.ranking.tiny import WORDS, write_ranker

    file = hub / "snapshots" / ("b" * 40) / "tokenizer.json"
    content = json.loads(file.read_text())
    words = [*WORDS[:5], *reversed(WORDS[5:])]
    content["model"]["vocab"] = {word: i for i, word in enumerate(words)}
    file.write_text(json.dumps(content))
    folder = str(write_ranker(encoder, tmp_path / "ranker"))
    text = "a very long story about cats"
    ids = [WORDS.index(word) for word in text.split()]
    by_text, old, new = (
        RankerFolder(folder, ("org/tiny", revision))()([prompt])[0]
        for revision, prompt in ((None, text), ("a" * 40, ids), (None, ids))
    )
    assert old == pytest.approx(by_text)
    assert new != pytest.approx(by_text)


def test_the_process_ends_with_the_engine(tmp_path):
    """Even when that is killed: nothing is left behind."""
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
        if state == "Z":  # ended, and its code was not asked for
            return
        time.sleep(0.05)
    pytest.fail("the scorer's process is still there")


def _state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][0]
    except OSError:
        return None
