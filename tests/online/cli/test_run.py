"""`sortedf run` from the command line, with the step engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from online.executor.vllm_version import installed_version
from online.log_file import read_log
from tests.refusals import refused

ROWS = "prefill_tokens,decode_tokens\n" + "\n".join(
    f"{5 + 7 * i % 40},{3 + 5 * i % 30}" for i in range(40)
)


@pytest.fixture
def run(cli, tmp_path):
    """Run a trace in 8 blocks of 32 tokens, with other arguments."""
    trace = tmp_path / "trace.csv"
    trace.write_text(ROWS, encoding="utf-8")
    return lambda *arguments: cli("run", trace, "--kv-budget", 256, *arguments)


@pytest.mark.parametrize(
    "how",
    [
        ["--method", "svf"],
        ["--method", "svf", "--mode", "list", "--backfill", 2],
        ["--method", "svf", "--mode", "policy", "--max-wait", 50],
        ["--method", "uniboost:gamma=0.1:guard-tokens=8", "--mode", "policy"],
    ],
)
def test_what_it_says(run, how):
    """The promised keys; what was planned is what happens."""
    code, out, _ = run(*how, "--json")
    content = json.loads(out)
    assert code == 0
    assert content["engine"] == "step"
    assert content["method"] == how[1]
    assert content["mode"] == (how[3] if "--mode" in how else "plan")
    assert content["completed"] == content["requests"] == 40
    assert content["steps"] == content["makespan"]
    if content["mode"] == "plan":
        assert content["steps_matching"] == 40
        assert (
            content["mean_completion_step"]
            == (content["predicted_mean_completion_step"])
        )
        assert content["preemptions"] == 0


def test_log_and_plot(run, tmp_path):
    """Both are written, and the log can be read again."""
    log, plot = tmp_path / "log.jsonl", tmp_path / "usage.svg"
    code, out, _ = run("--method", "svf", "-o", log, "--plot", plot)
    assert code == 0
    assert "40 of 40 requests" in out
    assert read_log(log).completed.all()
    assert plot.read_bytes().lstrip().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kv-budget", 20], "--kv-budget 20: must be at least one block of 32"),
        (["--mode", "policy"], "--mode policy needs --method"),
        (["--mode", "policy", "--method", "magic"], "unknown policy 'magic'"),
        (["--mode", "policy", "--method", "plan"], "needs the option 'start_s'"),
        (
            ["--mode", "policy", "--method", "uniboost:gamma=abc"],
            "gamma = 'abc' but must be a number or none",
        ),
        (
            ["--mode", "policy", "--method", "svf", "--time-limit", 1],
            "--time-limit is not for --mode policy",
        ),
        (["--method", "svf", "--max-wait", 1], "--max-wait is for --mode policy"),
        (["--method", "magic"], "unknown method 'magic'"),
        (["--engine", "gpu"], "unknown engine 'gpu'; choose one of: step, vllm"),
        (["--model", "m"], "--model is for --engine vllm only"),
        (["--step-time", "a100-llama-3-8b"], "its steps differ in length"),
        (["--plot", "usage.txt"], "must end in .png"),
        (["-o", "no/such/log.jsonl"], "no/such does not exist"),
    ],
)
def test_mistakes(run, arguments, words):
    """One line each, exit code 2, and nothing is run."""
    assert words in refused(run(*arguments))


def test_the_trace_is_never_overwritten(run, tmp_path):
    """Neither by the log nor by the picture, nor they by each other."""
    trace, both = tmp_path / "trace.csv", tmp_path / "both.svg"
    refused(run("--method", "svf", "-o", trace))
    refused(run("--method", "svf", "-o", both, "--plot", both))
    assert trace.read_text(encoding="utf-8") == ROWS
    assert not both.exists()


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed")
def test_an_engines_log_is_not_in_the_json(tmp_path):
    """vLLM's lines stood before the object, so that nothing could read it."""
    trace = tmp_path / "trace.csv"
    trace.write_text(ROWS, encoding="utf-8")
    asked = ["run", str(trace), "--kv-budget", "256", "--engine", "vllm", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "sortedf", *asked, "--method", "svf"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps_matching"] == 40
