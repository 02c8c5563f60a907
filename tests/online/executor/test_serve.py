"""`vllm serve` with the scheduler class: a real server, requests over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_engine import CPU_SETTINGS
from online.executor.vllm_version import installed_version

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed"),
]

START_S = 600
"""Seconds that a server may take to start: a busy machine is slow, not broken."""

REQUESTS = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server process with its port and its log."""

    def __init__(self, folder: Path, options: dict[str, object]) -> None:
        self.port = free_port()
        self.log = folder / "server.log"
        model = write_tiny_model(folder / "model", 1024, tokenizer=True)
        # What `vllm serve` starts; the command itself asks for the version of a package
        # named vllm and fails where that of the CPU build is installed.
        command = [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server",
            "--model", str(model), "--served-model-name", "tiny",
            "--load-format", "dummy", "--dtype", "float32", "--block-size", "32",
            "--num-gpu-blocks-override", "41", "--max-model-len", "1024",
            "--max-num-seqs", "16", "--max-num-batched-tokens", "128",
            "--enforce-eager", "--enable-prefix-caching", "--enable-chunked-prefill",
            "--no-async-scheduling", "--generation-config", "vllm",
            "--host", "127.0.0.1", "--port", str(self.port),
            "--scheduler-cls", "online.executor.vllm_scheduler.PolicyScheduler",
            "--additional-config", json.dumps({"sortedf": options}),
        ]  # fmt: skip
        # The engine core is a process of its own, as it is whenever it serves.
        settings = {**CPU_SETTINGS, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
        paths = [os.getcwd(), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, paths))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **settings, "PYTHONPATH": path},
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.tail()
            try:
                if self.get("/health")[0] == 200:
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        pytest.fail(f"the server did not start in {START_S} s:\n{self.tail()}")

    def get(self, path: str, body: object = None) -> tuple[int, bytes]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return answer.status, answer.read()

    def stop(self) -> int:
        """Ask the server to end; whatever is left of it after a while is killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def kill(self) -> None:
        """Leave nothing of the server's session behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def tail(self) -> str:
        return self.log.read_text()[-3000:]


@pytest.fixture
def server(tmp_path):
    started = Server(
        tmp_path, {"policy": "svf", "max_wait_s": 60, "predictor": "history"}
    )
    yield started
    started.kill()


def completion(server: Server, i: int) -> dict[str, object]:
    """Ask for an answer, with a hint, a wrong one or none."""
    most = [5, 40, 90][i % 3]
    hints = [{"predicted_tokens": most}, {"predicted_tokens": 3}, None][i // 3 % 3]
    body = {
        "model": "tiny",
        "prompt": "The same words at the head of all. " * (i % 4) + f"Number {i}.",
        "max_tokens": most,
        "ignore_eos": True,
        "temperature": 0,
    }
    if hints is not None:
        body["vllm_xargs"] = hints
    _, text = server.get("/v1/completions", body)
    return {"wanted": most, **json.loads(text)}


def test_a_server_answers_every_request_in_full(server):
    """Twenty at once, more than fit; prefix caching and chunked prefill are on."""
    server.wait_until_ready()
    with ThreadPoolExecutor(REQUESTS) as pool:
        answers = list(pool.map(lambda i: completion(server, i), range(REQUESTS)))
    for answer in answers:
        assert answer["usage"]["completion_tokens"] == answer["wanted"]
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["choices"][0]["text"]
    metrics = server.get("/metrics")[1].decode()
    done = [
        line
        for line in metrics.splitlines()
        if line.startswith("vllm:request_success_total")
    ]
    assert sum(float(line.split()[-1]) for line in done) == REQUESTS
    # Before the end: whether vLLM's front end then complains that its core is gone is a
    # matter of luck, with a time to shut down as without.
    log = server.log.read_text()
    assert server.stop() == 0, server.tail()
    assert "online.executor.vllm_scheduler.PolicyScheduler" in log
    for trouble in ("Traceback", "the policy", "starts no request"):
        assert trouble not in log, log[-3000:]
