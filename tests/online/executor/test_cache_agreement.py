"""Prefix caching in the step engine: as in real vLLM, request by request."""

from __future__ import annotations

import numpy as np
import pytest

from online.driver import drive
from online.executor.prompts import random_prompt
from online.policy import make_policy
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf import Instance
from tests.online.executor.test_agreement import same_logs
from tests.online.strategies import chains_of

BLOCK = 32

SETTINGS = [
    {"kv_budget": 2048, "max_batched_tokens": 8192, "max_num_seqs": 128},
    {"kv_budget": 1536, "max_batched_tokens": 96, "max_num_seqs": 64},
    {"kv_budget": 4096, "max_batched_tokens": 512, "max_num_seqs": 9},
    {"kv_budget": 3072, "max_batched_tokens": 256, "max_num_seqs": 32,
     "watermark": 0.05},
    {"kv_budget": 8192, "max_batched_tokens": 2048, "max_num_seqs": 256},
]  # fmt: skip


def forest(n, seed):
    """Prompts that branch off others at any token, and answers; no prompt twice."""
    draw = np.random.default_rng(seed)
    roots = [random_prompt(seed * 10_000 + g, 400) for g in range(4)]
    prompts = []
    for i in range(n):
        known = [*roots, *prompts[-40:]]
        start = known[int(draw.integers(len(known)))]
        cut = int(draw.choice([0, 32, 64, draw.integers(0, len(start) + 1)]))
        own = random_prompt(10**7 + seed * 10_000 + i, int(draw.integers(1, 120)))
        # Sometimes to whole blocks, so that the last of them must be computed again.
        prompt = start[:cut][:500] + own
        if draw.random() < 0.3:
            prompt = prompt[: max(len(prompt) // BLOCK * BLOCK, 1)]
        prompts.append(prompt)
    answer = np.where(
        draw.random(n) < 0.8, draw.integers(1, 40, n), draw.integers(40, 160, n)
    )
    unique = {tuple(p): i for i, p in enumerate(prompts)}
    keep = sorted(unique.values())
    return [prompts[i] for i in keep], answer[keep]


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_request_and_its_cached_tokens(real_engine, settings):
    """Forests of 300 requests; steps, preemptions and what was found, all the same."""
    prompts, answer = forest(310, settings["kv_budget"])
    n = len(prompts)
    assert n >= 300
    prefill = np.array([len(prompt) for prompt in prompts])
    arrival = np.sort(np.random.default_rng(1).integers(0, 200, n))
    instance = Instance(prefill, answer, settings["kv_budget"], arrival)
    engine, preemptions = None, 0
    for name in ("fcfs", "svf", "srpt"):
        tables = [RequestTable.of_instance(instance) for _ in range(2)]
        if engine is None:
            engine = real_engine(
                tables[0], make_policy(name), prompts=prompts, prefix_caching=True,
                max_model_len=1024, **settings,
            )  # fmt: skip
        else:
            engine.use(tables[0], make_policy(name), prompts=prompts)
        real = drive(engine)
        tables[1].chains = chains_of(prompts, BLOCK)
        twin = drive(StepEngine(tables[1], engine.rules, make_policy(name)))
        np.testing.assert_array_equal(real.cached_tokens, twin.cached_tokens, name)
        same_logs(real, twin, name)
        assert real.completed.all()
        assert real.cached_tokens.sum() > 0
        preemptions += int(real.preemptions.sum())
    assert preemptions > 0 or settings["kv_budget"] > 4000
