"""Requests ranked by a trained ranker: which text, which hints, and what may fail."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from online.executor.batch import serving
from online.executor.batch.batch_file import BatchRequest, read_batch
from online.executor.batch.expected_lengths import expected_tokens
from online.executor.batch.job import run_job
from online.executor.batch.ranked_requests import Ranked, RankerUse, prompt_text, rank
from online.ranking import load_ranker
from online.ranking.record_formats import batch_prompts
from online.ranking.records import Record
from tests.online.executor.batch.stub import (
    StubEngine,
    job_for,
    request,
    serve_with,
    write_batch,
)
from tests.online.ranking.tiny import write_encoder, write_ranker


class ByLetters:
    """Scores a text by its letters; a length is ten times the score."""

    def __init__(self):
        self.asked = []

    def score(self, prompts):
        self.asked += prompts
        return np.array([float(len(text)) for text in prompts])

    def lengths(self, scores, quantile):
        return np.asarray(scores) * 20 * quantile


def asking(name, **body):
    return BatchRequest(name, "/v1/chat/completions", body)


def said(*contents):
    return {"messages": [{"role": "user", "content": c} for c in contents]}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (said("Hi"), "Hi"),
        (said("Be kind.", "Hi"), "Be kind.\nHi"),
        (
            said([{"type": "text", "text": "Look"}, {"type": "text", "text": "!"}]),
            "Look\n!",
        ),
        ({"prompt": "once upon"}, "once upon"),
    ],
)
def test_the_text_is_that_of_training(tmp_path, body, text):
    """As `sortedf rank train` reads a batch's input."""
    assert prompt_text(body) == text
    path = write_batch(tmp_path / "in.jsonl", [request("a") | {"body": body}])
    content = {"custom_id": "a", "body": read_batch(path).requests[0].body}
    assert batch_prompts([Record("here", content)]) == {"a": text}


@pytest.mark.parametrize(
    "body",
    [
        {},
        said(""),
        said(" \n"),
        said("\ud800"),
        said(None),
        said([{"type": "image_url", "image_url": {"url": "x"}}]),
        {"messages": "Hi"},
        {"messages": [3]},
        {"prompt": [1, 2, 3]},
        {"prompt": ["a", "b"]},
    ],
)
def test_no_text_no_score(body):
    scorer = ByLetters()
    assert prompt_text(body) is None
    assert rank([asking("a", **body)], RankerUse(scorer)) == {}
    assert scorer.asked == []


def test_scores_and_lengths_by_request(caplog):
    requests = [asking("a", **said("four")), asking("b"), asking("c", **said("x"))]
    with caplog.at_level(logging.WARNING, "sortedf"):
        found = rank(requests, RankerUse(ByLetters()))
    assert found == {"a": Ranked(4.0, 40), "c": Ranked(1.0, 10)}
    assert "1 of 3 requests have no score" in caplog.text
    assert rank(requests, RankerUse(ByLetters(), 0.25))["a"].tokens == 20


def test_a_ranker_that_fails_fails_no_request(tmp_path, caplog):
    class Broken(ByLetters):
        def score(self, prompts):
            raise RuntimeError("out of memory")

    class Odd(ByLetters):
        def score(self, prompts):
            return np.array([np.nan, 2.0])

    write_batch(tmp_path / "in.jsonl", [request("a", max_tokens=9), request("b")])
    for scorer in (Broken(), Odd()):
        engine = StubEngine()
        job = job_for(tmp_path, method="pars", ranking=RankerUse(scorer))
        summary = run_job(job, serve_with(engine), lambda *_: None)
        assert (summary.completed, summary.failed) == (2, 0)
        assert engine.bodies["a"]["vllm_xargs"] == {"predicted_tokens": 9}
        (tmp_path / "out.jsonl").unlink()
    assert "the ranker failed (RuntimeError: out of memory)" in caplog.text
    assert engine.bodies["b"]["vllm_xargs"] == {"predicted_tokens": 20, "rank_score": 2}


def test_who_is_believed():
    """The request's own word, the file, the ranker up to the limit, the limit."""
    ranked = Ranked(1.0, 50)
    hinted = asking("a", vllm_xargs={"predicted_tokens": 5}, max_tokens=9)
    assert expected_tokens(hinted, {"a": 7}, ranked) == 5
    assert expected_tokens(asking("a", max_tokens=9), {"a": 7}, ranked) == 7
    assert expected_tokens(asking("a", max_tokens=9), {}, ranked) == 9
    assert expected_tokens(asking("a", max_tokens=90), {}, ranked) == 50
    assert expected_tokens(asking("a"), {}, ranked) == 50
    assert expected_tokens(asking("a", max_tokens="many"), {}, ranked) == 50


@pytest.mark.parametrize("method", ["pars", "svf", "sorted-f", "auto"])
def test_hints_of_every_kind_of_method(tmp_path, method):
    """A policy gets the score, an offline method the position that it found."""
    texts = {"long": "x" * 20, "short": "x", "middle": "x" * 9}
    write_batch(tmp_path / "in.jsonl", [request(n, t) for n, t in texts.items()])
    engine = StubEngine(at_once=1)
    job = job_for(tmp_path, method=method, ranking=RankerUse(ByLetters()))
    run_job(job, serve_with(engine), lambda *_: None)
    hints = {name: body["vllm_xargs"] for name, body in engine.bodies.items()}
    assert {name: hint["predicted_tokens"] for name, hint in hints.items()} == {
        "long": 200,
        "short": 10,
        "middle": 90,
    }
    scores = {name: hint["rank_score"] for name, hint in hints.items()}
    assert sorted(scores, key=scores.__getitem__) == ["short", "middle", "long"]
    if method in ("pars", "svf"):
        assert scores == {name: len(text) for name, text in texts.items()}
    else:
        assert engine.asked == ["short", "middle", "long"]


@pytest.mark.parametrize("quantile", [0, 1, -0.5, float("nan")])
def test_a_quantile_out_of_range(quantile):
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        RankerUse(ByLetters(), quantile)


def test_the_command_takes_a_rankers_folder(cli, tmp_path, monkeypatch):
    """Loaded before the engine; its scores and lengths go along with the requests."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    encoder = write_encoder(tmp_path / "encoder")
    write_ranker(encoder, tmp_path / "ranker")
    texts = ["write a long story", "yes or no ?", "list the cats", "what is a poem ?"]
    write_batch(
        tmp_path / "in.jsonl", [request(f"r{i}", text) for i, text in enumerate(texts)]
    )
    engine = StubEngine(at_once=1)
    monkeypatch.setattr(serving, "serve", serve_with(engine))
    code, _, err = cli(
        "run-batch", "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl",
        "--model", "m", "--method", "pars", "--ranker", tmp_path / "ranker",
        "--ranker-quantile", 0.9,
    )  # fmt: skip
    assert code == 0, err
    loaded = load_ranker(tmp_path / "ranker")
    scores = loaded.score(texts)
    lengths = np.ceil(loaded.lengths(scores, 0.9))
    hints = [engine.bodies[f"r{i}"]["vllm_xargs"] for i in range(len(texts))]
    assert [hint["rank_score"] for hint in hints] == pytest.approx(scores, abs=1e-5)
    assert [hint["predicted_tokens"] for hint in hints] == lengths.tolist()
