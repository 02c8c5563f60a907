"""Requests with the pairs' own lengths, and their engines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import MissingDataError
from benchmarks.common.online_runs import vllm_rules
from sortedf.errors import SortedfError
from sortedf.json_values import read_lines
from sortedf.step_time.presets import BYTES, LLAMA_2_7B, LLAMA_3_8B, PRESETS
from sortedf.traces import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime
    from sortedf.step_time.presets import ModelSize

    Ints = NDArray[np.int64]

LETTERS_PER_TOKEN = 4
"""Letters per token of a prompt, whose tokens are not in the data: a rule of thumb."""

GPU_BYTES = 80e9
GPU_SHARE = 0.9
"""Share of a GPU's memory for vLLM; the KV cache gets the memory beside the weights."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A model of about 7e9 weights on one GPU, by a preset's step times."""

    preset: str
    model: ModelSize

    @property
    def rules(self) -> EngineModel:
        """VLLM's rules, with as many tokens of KV as fit in memory."""
        left = GPU_BYTES * GPU_SHARE - self.model.parameters * BYTES
        return vllm_rules(int(left / self.model.kv_bytes))

    @property
    def step_time(self) -> StepTime:
        """Seconds per step."""
        return PRESETS[self.preset]


CHAT_ENGINE = Engine("a100-llama-2-7b", LLAMA_2_7B)
REASONING_ENGINE = Engine("a100-llama-3-8b", LLAMA_3_8B)
"""With a quarter of the KV per token: long answers hardly fit otherwise."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts of one data set with one model's answer lengths.

    Attributes
    ----------
    data : str
        File of pairs.
    source : str
        Prefix of the field `source`.
    model : str
    engine : Engine
    loads : tuple of float
        Poisson arrivals beside the burst.
    limited : tuple of float
        Targets of tau_b that are run with a limit on waiting, too; such runs are slow
        if almost all requests wait for longer than the limit.
    """

    data: str
    source: str
    model: str
    engine: Engine
    loads: tuple[float, ...]
    limited: tuple[float, ...]


TARGETS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.96, 1.0)
"""tau_b of ranks with noise; 0.96 is the best that the PARS paper reports."""

LOADS = (0.8, 1.0, 1.2, 1.5)

WORKLOADS: dict[str, Workload] = {
    "GPT-4 Turbo": Workload(
        "alpaca_eval",
        "alpaca_eval",
        "gpt-4-turbo-2024-04-09",
        CHAT_ENGINE,
        LOADS,
        TARGETS,
    ),
    "Llama 3.1 8B": Workload(
        "alpaca_eval",
        "alpaca_eval",
        "Meta-Llama-3.1-8B-Instruct-Turbo",
        CHAT_ENGINE,
        LOADS,
        TARGETS,
    ),
    "DeepSeek-R1": Workload(
        "reasoning_planning",
        "llms_planning",
        "DeepSeek-R1",
        REASONING_ENGINE,
        (1.2,),
        (0.0, 0.5, 1.0),
    ),
}
"""Workloads by the model's name on the pages."""


@cache
def lengths(data: Path, workload: Workload) -> tuple[Ints, Ints]:
    """Prompt and answer lengths of every pair of a workload."""
    path = data / "pairs" / f"{workload.data}.jsonl.gz"
    if not path.is_file():
        raise MissingDataError(
            f"{path} is not there; name the folder of data by --data or by the "
            "environment variable SORTEDF_DATA."
        )
    rows = [
        row
        for _, row in read_lines(path, SortedfError)
        if row["model"] == workload.model and row["source"].startswith(workload.source)
    ]
    prefill = [-(-len(row["prompt"]) // LETTERS_PER_TOKEN) or 1 for row in rows]
    decode = [row["response_tokens"] for row in rows]
    return np.array(prefill, dtype=np.int64), np.array(decode, dtype=np.int64)


def drawn(prefill: Ints, decode: Ints, n: int, rng: np.random.Generator) -> Trace:
    """Draw requests with replacement; all arrive at once."""
    rows = rng.integers(0, len(decode), n)
    return Trace(prefill[rows], decode[rows])
