"""The command: what it prints, and one line for a mistake, before any engine."""

from __future__ import annotations

import json

import pytest

from online.executor.batch import serving
from sortedf.engine_model import EngineModel
from tests.online.executor.batch.stub import (
    StubEngine,
    read_lines,
    request,
    serve_with,
    write_batch,
)


@pytest.fixture
def run(cli, tmp_path, monkeypatch):
    """Call `sortedf run-batch` on in.jsonl in a folder, with an engine that echoes."""
    engine = StubEngine(at_once=1)
    monkeypatch.setattr(serving, "serve", serve_with(engine))

    def call(requests=None, *arguments):
        if requests is not None:
            write_batch(tmp_path / "in.jsonl", requests)
        files = ("-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl")
        return cli("run-batch", *files, "--model", "m", *arguments)

    call.engine = engine
    return call


def test_json(run, tmp_path):
    code, out, err = run([request("a"), request("b", "raise")], "--json")
    assert code == 0, err
    content = json.loads(out)
    assert (content["requests"], content["completed"], content["failed"]) == (2, 1, 1)
    assert {"resumed", "seconds", "mean_completion_s", "preemptions"} <= set(content)
    assert len(read_lines(tmp_path / "out.jsonl")) == 2


def test_table(run):
    code, out, _ = run([request("a")], "--method", "sorted-f", "--backfill", "5")
    assert code == 0
    assert "1 of 1 requests" in out
    assert run.engine.scheduler["backfill"] == 5


def test_an_engine_that_dies(run, tmp_path):
    code, out, err = run([request("a"), request("b", "die")], "--json")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "the engine died; 1 of 2 requests are finished" in err
    assert "run the same command again" in err
    assert (tmp_path / "out.jsonl.journal").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "svff"), "unknown method 'svff'"),
        (("--kv-budget", "none"), "--kv-budget none"),
        (("--engine-arg", "dtype"), "must be NAME=VALUE"),
        (("--lengths", "none.csv"), "none.csv cannot be read"),
        (("--max-wait", "-1"), "max-wait"),
        (("--ranker", "no-such-folder"), "no-such-folder"),
    ],
)
def test_mistakes_are_one_line(run, tmp_path, arguments, message):
    code, out, err = run([request("a")], *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert run.engine.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_broken_batch_starts_nothing(run, tmp_path):
    code, _, err = run([request("a"), request("a")])
    assert code == 2
    assert "in.jsonl: line 2: custom_id 'a'" in err
    assert run.engine.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_expected_savings(run):
    """Said before the start, and beside what was found; each of `n` answers counts."""
    run.engine.rules = EngineModel.vllm(1024, 16, 8, 256, prefix_caching=True)
    run.engine.counts = run.engine.counts | {"cached_tokens": 32, "prompt_tokens": 100}
    requests = [request("a", "x" * 33, n=2), request("b", "x" * 34)]
    code, out, err = run(requests, "--json")
    assert code == 0, err
    assert "Expected from shared prefixes: 64 of 100 prompt tokens in the cache" in err
    content = json.loads(out)
    assert content["expected_cached"] == {"tokens": 64, "of": 100, "share": 0.64}
    assert content["cached"] == {"tokens": 32, "of": 100, "share": 0.32}


def test_savings_in_the_table(run):
    """With an offline method, too; none without a cache of prefixes."""
    run.engine.rules = EngineModel.vllm(1024, 16, 8, 256, prefix_caching=True)
    requests = [request("a", "x" * 33), request("b", "x" * 34)]
    code, out, _ = run(requests, "--method", "best-list")
    assert code == 0
    assert "32 of 67 prompt tokens" in out


def test_no_savings_without_a_cache(run):
    """Nothing is expected, and nothing is said."""
    code, out, err = run([request("a", "x" * 33)], "--json")
    assert code == 0
    assert "shared prefixes" not in err
    content = json.loads(out)
    assert content["expected_cached"] is None
    assert content["cached"] is None
