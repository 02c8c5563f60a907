"""Claim: MemGuard evicts a request at most logarithmically often.

A request that was started is not evicted for another before its attained work, rounded
down to the thresholds `k, 2 k, 4 k, ...`, has grown (arXiv 2606.18431). With work in
tokens of prompt and answer, `s + o` in all, and `level(w)` the number of thresholds up
to `w`, the policy evicts it at most

    level(s + o - 1) - level(s)    times.

*Proof.* Attained work never falls, so each eviction finds it past a threshold that it
had not passed at the start before. Work counts as at least the prompt from the first
start on, and an evicted request has at least one token left, so these thresholds lie
above `s` and not above `s + o - 1`. QED.

Preemptions by the engine itself, when no block is free, are not counted: no policy can
forbid those. Proved above; checked by counting evictions in sampled runs under tight
memory, where without MemGuard some request is evicted more often.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from online.simulator import simulate
from sortedf import Instance
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from online.step_engine import StepRecord


def allowed(work: int, first: int) -> int:
    """Count the thresholds `k, 2 k, 4 k, ...` up to `work`."""
    return (work // first).bit_length()


def evictions(instance: Instance, policy: str, **options: float) -> Counter[int]:
    """Count how often the policy evicts each request."""
    seen: Counter[int] = Counter()

    def watch(record: StepRecord, end_s: float) -> None:
        seen.update(record.evicted)

    rules = EngineModel.vllm(instance.kv_budget)
    simulate(instance, policy, rules, options=options, on_step=watch)
    return seen


def cases() -> list[Instance]:
    """Long answers that arrive one after another, with memory for about two."""
    rng = np.random.default_rng(10)
    drawn = []
    for _ in range(10):
        prefill, decode = rng.integers(1, 6, 10), rng.integers(1, 60, 10)
        budget = int((prefill + decode).max() + rng.integers(0, 60))
        arrival = rng.integers(0, 80, 10)
        drawn.append(Instance(prefill, decode, budget, arrival=arrival))
    return drawn


def test_never_more_often_than_thresholds() -> None:
    """Every request of every run, two first thresholds, with almost no gamma."""
    total = tight = 0
    for instance in cases():
        for first in (1, 2, 3, 8):
            seen = evictions(instance, "uniboost", gamma=1e-6, guard_tokens=first)
            total += seen.total()
            for i, n in seen.items():
                s, o = int(instance.prefill[i]), int(instance.decode[i])
                most = allowed(s + o - 1, first) - allowed(s, first)
                assert n <= most
                tight += n == most > 0
    assert total > 40
    assert tight


def test_without_it_requests_are_evicted_more_often() -> None:
    """Some request is evicted more often than MemGuard would allow."""
    more = 0
    for instance in cases():
        work = (instance.prefill + instance.decode).tolist()
        seen = evictions(instance, "uniboost-base", gamma=1e-6)
        more += any(n > allowed(work[i], 8) for i, n in seen.items())
    assert more
