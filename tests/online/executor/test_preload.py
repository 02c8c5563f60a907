"""No request waits for a kernel to be compiled or loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from online.executor.preload import preload
from online.executor.vllm_version import installed_version
from online.policy import make_policy
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS

RUN = """
import json, os, sys
from numba.core.registry import CPUDispatcher

from online.executor.vllm_engine import VllmSettings, start_engine
from online.executor.prompts import random_prompt
from sortedf.engine_model import EngineModel

OURS = ("online.", "sortedf.")

def ready():
    modules = [m for name, m in sys.modules.items() if name.startswith(OURS)]
    kernels = (o for m in modules for o in vars(m).values())
    return {
        (k.__module__, k.__name__, len(k.overloads))
        for k in kernels if isinstance(k, CPUDispatcher)
    }

late = {}
for policy in sys.argv[1:]:
    os.environ["SORTEDF_SCHEDULER"] = json.dumps({"policy": policy})
    llm, vllm = start_engine(
        VllmSettings(EngineModel.vllm(640, 32, 24, 8192), max_model_len=512)
    )
    before = ready()
    for i in range(100):
        params = vllm.SamplingParams(
            max_tokens=3 + i % 20, ignore_eos=True, detokenize=False
        )
        prompt = {"prompt_token_ids": random_prompt(i, 2 + i % 30)}
        llm.add_request(str(i), prompt, params)
    while llm.has_unfinished_requests():
        llm.step()
    late[policy] = sorted(ready() - before)
    llm.engine_core.shutdown()
    assert any(count for *_, count in ready()), "nothing is counted"
print("late:", json.dumps(late))
"""


@pytest.mark.vllm
@pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed")
@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_kernels_are_there_before_requests():
    """The first request of a server waited 11 seconds on a new machine."""
    policies = ["sorted-f-online", "srpt", "svf-boost", "las"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *policies],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = next(x for x in done.stdout.splitlines() if x.startswith("late: "))
    assert json.loads(line[6:]) == {policy: [] for policy in policies}


@pytest.mark.parametrize(
    "rules",
    [
        EngineModel.vllm(kv_budget=1),
        EngineModel.vllm(
            kv_budget=64, block_size=32, max_num_seqs=1, max_batched_tokens=1
        ),
        EngineModel.vllm(kv_budget=640, block_size=16, max_batched_tokens=20),
        EngineModel.vllm(kv_budget=10**6, block_size=1, max_num_seqs=8, watermark=0.1),
        EngineModel.vllm(4096, 32, 16, 16, chunked_prefill=True, watermark=0.5),
    ],
)
@pytest.mark.parametrize("policy", ["fcfs", "svf", "sorted-f-amin", "srpt", "mlfq"])
def test_any_rules(policy, rules, caplog):
    """An engine starts whatever its rules are, and its log stays clean."""
    preload(make_policy(policy, max_wait_s=5), rules, UNIT_STEPS)
    assert not caplog.records


def test_a_policy_that_fails_is_logged(caplog):
    """It does so in the engine as well, and must not keep it from starting."""

    class Failing:
        def decide(self, state):
            raise RuntimeError("out of order")

    preload(Failing(), EngineModel.vllm(kv_budget=100), UNIT_STEPS)
    assert "out of order" in caplog.text
