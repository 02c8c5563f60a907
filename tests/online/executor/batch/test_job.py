"""A batch from its file to its output, with an engine that only echoes."""

from __future__ import annotations

import asyncio
import json

import pytest

from online.executor.batch.answer_lines import error_answer
from online.executor.batch.batch_errors import (
    BatchFileError,
    JournalError,
    UnfinishedError,
)
from online.executor.batch.job import run_job
from sortedf.errors import OutputError
from tests.online.executor.batch.stub import (
    StubEngine,
    job_for,
    read_lines,
    request,
    serve_with,
    write_batch,
)


def run(folder, engine=None, requests=None, report=lambda *_: None, **options):
    """Run a batch in this folder; return the summary and the engine."""
    if requests is not None:
        write_batch(folder / "in.jsonl", requests)
    engine = engine or StubEngine()
    return run_job(job_for(folder, **options), serve_with(engine), report), engine


def test_every_request_once_in_the_inputs_order(tmp_path):
    reports = []
    requests = [request(f"r{i}", f"text {i}") for i in range(5)]
    summary, _ = run(tmp_path, None, requests, lambda *now: reports.append(now))
    lines = read_lines(tmp_path / "out.jsonl")
    assert [line["custom_id"] for line in lines] == [f"r{i}" for i in range(5)]
    assert [line["response"] for line in lines] == [f"text {i}" for i in range(5)]
    assert (summary.requests, summary.completed, summary.failed) == (5, 5, 0)
    assert reports[0] == (0, 0, 5)
    assert reports[-1] == (5, 0, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_one_that_raises_does_not_stop_the_others(tmp_path):
    summary, _ = run(tmp_path, None, [request("a", "raise"), request("b")])
    bad, good = read_lines(tmp_path / "out.jsonl")
    assert bad["error"] == "LookupError: no such thing"
    assert bad["response"]["status_code"] == 500
    assert good["error"] is None
    assert (summary.completed, summary.failed) == (1, 1)


@pytest.mark.parametrize(
    "url",
    ["/v1/embeddings", "/score", "/v1/rerank", "/v1/audio/transcriptions", "/v2/chat"],
)
def test_other_apis_are_refused_clearly(tmp_path, url):
    summary, engine = run(tmp_path, None, [request("a", url=url), request("b")])
    assert engine.asked == ["b"]
    refused, _ = read_lines(tmp_path / "out.jsonl")
    assert refused["response"]["status_code"] == 400
    assert refused["error"] == (
        f"URL {url} was used. Supported endpoints: /v1/chat/completions, "
        "/v1/completions."
    )
    assert (summary.completed, summary.failed) == (1, 1)


def test_no_engine_is_started_for_nothing(tmp_path):
    """All requests are for other APIs, so no engine is needed."""

    def serve(settings, scheduler):
        raise AssertionError("started")

    write_batch(tmp_path / "in.jsonl", [request("a", url="/v1/embeddings")])
    summary = run_job(job_for(tmp_path), serve, lambda *_: None)
    assert (summary.failed, summary.preemptions) == (1, None)


@pytest.mark.parametrize(
    ("content", "what"), [("die", "the engine died"), ("stop", "interrupted")]
)
def test_what_ends_early_goes_on(tmp_path, content, what):
    """Done stays done; the unfinished are asked again; the message says how."""
    requests = [request(f"r{i}") for i in range(4)] + [request("last", content)]
    engine = StubEngine(at_once=1)
    with pytest.raises(UnfinishedError, match=f"{what}; 4 of 5 .*same command again"):
        run(tmp_path, engine, requests)
    assert not (tmp_path / "out.jsonl").exists()
    assert (tmp_path / "out.jsonl.journal").exists()

    class Healed(StubEngine):
        async def _answer(self, request, body):
            return await super()._answer(request, {"messages": [{"content": "well"}]})

    summary, engine = run(tmp_path, Healed())
    assert engine.asked == ["last"]
    assert (summary.resumed, summary.completed) == (4, 5)
    assert [line["custom_id"] for line in read_lines(tmp_path / "out.jsonl")] == [
        one["custom_id"] for one in requests
    ]


def test_cancelled_from_outside_is_an_interruption(tmp_path):
    """As by SIGTERM."""

    class Cancelled(StubEngine):
        async def release(self, expected):
            await asyncio.sleep(0.05)
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()

    engine = Cancelled(delay_s=iter([0.0, 5.0]).__next__, at_once=1)
    with pytest.raises(UnfinishedError, match="interrupted; 1 of 2"):
        run(tmp_path, engine, [request("a"), request("b")])


def test_what_is_cancelled_has_no_answer(tmp_path):
    """The engine's API turns a cancelled call into an error, which is not kept."""

    class Polite(StubEngine):
        async def answer(self, request, body):
            try:
                return await super().answer(request, body)
            except asyncio.CancelledError:
                return error_answer(request.custom_id, "client disconnected")

    requests = [request("a"), request("b", "die"), request("c"), request("d")]
    with pytest.raises(UnfinishedError, match="the engine died; 1 of 4"):
        run(tmp_path, Polite(None, iter([0, 0, 5, 5]).__next__, 1), requests)


def test_an_engine_that_does_not_start_leaves_nothing(tmp_path):
    def serve(settings, scheduler):
        raise RuntimeError("the engine did not start: no memory")

    write_batch(tmp_path / "in.jsonl", [request("a")])
    with pytest.raises(UnfinishedError, match="no memory; no request was finished"):
        run_job(job_for(tmp_path), serve, lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_complete_but_not_put_together(tmp_path):
    """Killed after the last answer: the output is written without an engine."""
    requests = [request("a"), request("b")]
    with pytest.raises(OSError, match="boom"):
        run(tmp_path, None, requests, report=boom_when_done)
    summary, engine = run(tmp_path)
    assert engine.asked == []
    assert (summary.resumed, summary.completed) == (2, 2)


def boom_when_done(done, failed, total):
    if done == total:
        raise OSError("boom")


def test_the_journal_of_another_input_or_model_is_refused(tmp_path):
    with pytest.raises(OSError, match="boom"):
        run(tmp_path, None, [request("a")], report=boom_when_done)
    with pytest.raises(JournalError, match="another model, m: finish"):
        run(tmp_path, model="n")
    with pytest.raises(JournalError, match="another input file"):
        run(tmp_path, None, [request("a"), request("b")])


def test_other_settings_are_told_and_taken(tmp_path, caplog):
    with pytest.raises(OSError, match="boom"):
        run(tmp_path, None, [request("a")], report=boom_when_done)
    run(tmp_path, method="fcfs")
    assert "was started with other settings" in caplog.text


def test_outputs_that_cannot_be_are_refused_first(tmp_path):
    write_batch(tmp_path / "in.jsonl", [request("a")])
    job = job_for(tmp_path)
    for output, error in (
        (tmp_path / "none" / "out", OutputError),
        (tmp_path, OutputError),
        (tmp_path / "in.jsonl", BatchFileError),
    ):
        other = type(job)(job.input, output, job.settings, job.method)
        with pytest.raises(error):
            run_job(other, None, lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_hints_come_from_the_length_file_and_the_limits(tmp_path):
    (tmp_path / "lengths.csv").write_text("custom_id,tokens\na,7\nother,1\n")
    requests = [request("a", max_tokens=90), request("b", max_tokens=80), request("c")]
    _, engine = run(tmp_path, None, requests, lengths=tmp_path / "lengths.csv")
    hints = {name: body.get("vllm_xargs") for name, body in engine.bodies.items()}
    assert hints == {"a": {"predicted_tokens": 7}, "b": {"predicted_tokens": 80},
                     "c": None}  # fmt: skip
    assert engine.scheduler["policy"] == "svf"


def test_an_offline_methods_order_is_sent_along(tmp_path):
    """Smallest volume first, as planned; what never fits comes last."""
    requests = [
        request("long", "x" * 100, max_tokens=200),
        request("never", "x" * 600, max_tokens=9),
        request("short", "x", max_tokens=3),
        request("middle", "x" * 50, max_tokens=60),
    ]
    _, engine = run(tmp_path, None, requests, method="sorted-f")
    assert engine.scheduler["policy"] == "pars"
    assert engine.asked == ["short", "middle", "long", "never"]
    scores = {n: body["vllm_xargs"]["rank_score"] for n, body in engine.bodies.items()}
    assert scores == {"short": 0, "middle": 1, "long": 2, "never": 4}
    json.dumps(engine.bodies)  # plain numbers, as the engine's API wants them
