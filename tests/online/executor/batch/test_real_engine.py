"""Real engines: killed and resumed, the answers are those of `vllm run-batch`.

Each engine takes half a minute to start, so one story serves several tests: a batch is
killed in the middle and resumed, and the stock command answers the same requests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_version import installed_version
from tests.online.executor.batch.stub import read_lines, request, write_batch

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed"),
]

ROOT = Path(__file__).parents[4]
KV_BUDGET = 1024
NUM_GOOD = 60
TIMEOUT_S = 300
SMALL = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # To start sooner: no process for the worker, and none that imports vLLM again.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",
}


def good_requests(model):
    """Short and long answers, of known lengths; chat and one plain completion."""
    requests = [
        request(
            f"r{i}",
            f"request number {i} " * (8 if i % 5 == 0 else 1),
            model=model,
            max_tokens=220 if i % 5 == 0 else 10 + i % 7,
            temperature=0,
            ignore_eos=True,
        )
        for i in range(NUM_GOOD)
    ]
    requests[3]["body"]["vllm_xargs"] = {"predicted_tokens": 5}
    return requests


def other_requests(model):
    """One for the other API, and some that cannot be answered."""
    plain = {"model": model, "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    return [
        {"custom_id": "plain", "method": "POST", "url": "/v1/completions",
         "body": plain | {"prompt": "once upon"}},
        request("wrong model", model="gpt-4", max_tokens=4),
        request("wrong type", model=model, max_tokens="many"),
        request("too long", "x" * 2000, model=model, max_tokens=4),
        request(
            "long answer", model=model, max_tokens=KV_BUDGET, temperature=0,
            ignore_eos=True,
        ),
        request("stream", model=model, max_tokens=4, stream=True),
        request("embed", model=model, url="/v1/embeddings"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Kill a run in the middle, resume it, and let stock vLLM answer the same."""
    folder = tmp_path_factory.mktemp("batch")
    # Longer than the KV cache holds: the engine must not wait for room for ever.
    model = str(write_tiny_model(folder / "model", 4 * KV_BUDGET, tokenizer=True))
    good, other = good_requests(model), other_requests(model)
    write_batch(folder / "good.jsonl", good)
    write_batch(folder / "all.jsonl", [*other, *good])
    baseline = start(stock_command(folder, model), folder / "stock.log")
    killed = kill_in_the_middle(folder, model)
    resumed = subprocess.run(
        [*our_command(folder, model), "--method", "sorted-f"],
        capture_output=True, text=True, timeout=TIMEOUT_S, env=os.environ | SMALL,
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert baseline.wait(TIMEOUT_S) == 0, (folder / "stock.log").read_text()
    return {
        "killed": killed,
        "summary": json.loads(resumed.stdout),
        "ours": {line["custom_id"]: line for line in read_lines(folder / "ours.jsonl")},
        "order": [line["custom_id"] for line in read_lines(folder / "ours.jsonl")],
        "asked": [one["custom_id"] for one in (*other, *good)],
        "stock": read_lines(folder / "stock.jsonl"),
        "files": sorted(path.name for path in folder.iterdir()),
    }


def start(command, log):
    """Start a command whose words go to a file."""
    with log.open("w") as file:
        return subprocess.Popen(
            command, stdout=file, stderr=file, cwd=ROOT, env=os.environ | SMALL
        )


def stock_command(folder, model):
    return [
        sys.executable, "-m", "vllm.entrypoints.launchers.run_batch",
        "-i", folder / "good.jsonl", "-o", folder / "stock.jsonl", "--model", model,
        "--load-format", "dummy", "--enforce-eager", "--dtype", "float32",
        "--block-size", "32", "--num-gpu-blocks-override", str(KV_BUDGET // 32 + 1),
        "--max-model-len", str(KV_BUDGET), "--distributed-executor-backend", "uni",
    ]  # fmt: skip


def our_command(folder, model):
    return [
        sys.executable, "-m", "sortedf", "run-batch",
        "-i", folder / "all.jsonl", "-o", folder / "ours.jsonl", "--model", model,
        "--kv-budget", str(KV_BUDGET), "--block-size", "32", "--json",
        "--engine-arg", "load_format=dummy", "--engine-arg", "enforce_eager=true",
        "--engine-arg", "dtype=float32",
        "--engine-arg", "distributed_executor_backend=uni",
    ]  # fmt: skip


def kill_in_the_middle(folder, model):
    """Run until some are done, kill; return what was in the journal, and its engine."""
    run = start(our_command(folder, model), folder / "killed.log")
    journal = folder / "ours.jsonl.journal"
    began = time.monotonic()
    while not journal.exists() or journal.read_bytes().count(b"\n") < 15:
        assert run.poll() is None, (folder / "killed.log").read_text()
        assert time.monotonic() < began + TIMEOUT_S
        time.sleep(0.01)
    engines = {pid: name_of(pid) for pid in children(run.pid)}
    run.send_signal(signal.SIGKILL)
    run.wait()
    whole = journal.read_bytes().rpartition(b"\n")[0].split(b"\n")[1:]
    left_s = time.monotonic() + 30
    while any(map(alive, engines)) and time.monotonic() < left_s:
        time.sleep(0.1)
    return {
        "done": [json.loads(line) for line in whole],
        "engines": engines,
        "outlived": [name for pid, name in engines.items() if alive(pid)],
    }


def children(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()]


def name_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def alive(pid):
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_every_request_is_there_once_in_order(story):
    assert story["order"] == story["asked"]
    assert "ours.jsonl.journal" not in story["files"]
    assert story["summary"]["requests"] == len(story["asked"])


def test_what_was_done_is_not_done_again(story):
    """Byte for byte what the journal of the killed run held."""
    done = story["killed"]["done"]
    assert 15 <= len(done) < len(story["asked"])
    assert story["summary"]["resumed"] == len(done)
    for entry in done:
        assert story["ours"][entry["custom_id"]] == entry["output"]


def test_a_killed_runs_engine_does_not_outlive_it(story):
    assert story["killed"]["engines"]
    assert story["killed"]["outlived"] == []


def test_the_answers_are_those_of_stock_vllm(story):
    """The same ids, texts, usage and fields, at temperature 0."""
    assert len(story["stock"]) == NUM_GOOD
    for theirs in story["stock"]:
        ours = story["ours"][theirs["custom_id"]]
        assert text_of(ours) == text_of(theirs)
        assert fields_of(ours) == fields_of(theirs)
        usage = [one["response"]["body"]["usage"] for one in (ours, theirs)]
        assert usage[0] == usage[1]


def text_of(line):
    choice = line["response"]["body"]["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def fields_of(value):
    if not isinstance(value, dict):
        return None
    return {name: fields_of(part) for name, part in value.items()}


def test_bad_requests_have_an_error_each(story):
    bad = {
        "wrong model": (404, "does not exist"),
        "wrong type": (400, "max_tokens"),
        "too long": (400, "1024"),
        "stream": (400, "stream"),
        "embed": (400, "Supported endpoints: /v1/chat/completions"),
    }
    failed = {name for name, line in story["ours"].items() if line["error"]}
    assert failed == set(bad)
    assert story["summary"]["failed"] == len(bad)
    for name, (code, words) in bad.items():
        line = story["ours"][name]
        assert line["response"]["status_code"] == code, line
        assert words in json.dumps(line["error"]), line


def test_plain_completions_are_answered(story):
    line = story["ours"]["plain"]
    body = line["response"]["body"]
    assert line["response"]["status_code"] == 200
    assert body["object"] == "text_completion"
    assert len(body["choices"][0]["text"]) == 4
    assert body["usage"]["completion_tokens"] == 4


def test_an_answer_ends_where_the_cache_does(story):
    """More was asked for than the KV cache holds: cut there, as by the model's end."""
    body = story["ours"]["long answer"]["response"]["body"]
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == KV_BUDGET


def test_nothing_is_preempted_with_known_lengths(story):
    assert story["summary"]["preemptions"] == 0
    assert story["summary"]["mean_completion_s"] < story["summary"]["makespan_s"]


def test_what_is_found_in_the_cache_is_what_was_expected(tmp_path):
    """Token for token where requests run one by one, and as vLLM's answers say."""
    model = str(write_tiny_model(tmp_path / "model", 4 * KV_BUDGET, tokenizer=True))
    rules = "answer in the style of a railway guide " * 4
    requests = [
        request(
            f"r{i}", rules * (i % 3) + f"question {i}", model=model, max_tokens=4,
            temperature=0, ignore_eos=True,
        )
        for i in range(12)
    ]  # fmt: skip
    write_batch(tmp_path / "all.jsonl", requests)
    run = subprocess.run(
        [
            *our_command(tmp_path, model), "--max-num-seqs", "1", "--method", "auto",
            "--engine-arg", "enable_prompt_tokens_details=true", "--time-limit", "1",
        ],
        capture_output=True, text=True, timeout=TIMEOUT_S, env=os.environ | SMALL,
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    answers = read_lines(tmp_path / "ours.jsonl")
    usage = [line["response"]["body"]["usage"] for line in answers]
    found = [(own["prompt_tokens_details"] or {}).get("cached_tokens") for own in usage]
    cached = summary["cached"]
    assert cached["of"] == sum(own["prompt_tokens"] for own in usage)
    assert cached["tokens"] == sum(tokens or 0 for tokens in found) > 0
    assert summary["expected_cached"] == cached
    assert "Expected from shared prefixes" in run.stderr
