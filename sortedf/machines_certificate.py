"""A certificate of the bound by identical machines: only the claim.

At most `K` requests run in a step, so no schedule of a backlog has a sum of completions
below that of shortest first on `K` machines that each serve one request at a time
(`sortedf.bounds.machines`). This file shares no code with the bounds: it simulates that
schedule machine by machine.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortedf.claim import Claim

if TYPE_CHECKING:
    from sortedf.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class MachinesCertificate(Claim):
    """A claimed lower bound that the instance alone proves."""


def machines_prove(instance: Instance) -> int:
    """Simulate shortest first on `K` machines; at least the sum of answers."""
    answers = sorted(instance.decode.tolist())
    # The time at which each machine is free.
    free = [0] * min(_most_at_once(instance), len(answers))
    total = 0
    for answer in answers:
        done = free[0] + answer
        heapq.heapreplace(free, done)
        total += done
    least: int = max(total - sum(instance.arrival.tolist()), sum(answers))
    return least


def _most_at_once(instance: Instance) -> int:
    """Return the largest number of requests in one step by the engine's limits."""
    engine, n = instance.engine, instance.num_requests
    limits = [n]
    if engine.max_num_seqs is not None:
        limits.append(engine.max_num_seqs)
    if engine.max_batched_tokens is not None:
        limits.append(engine.max_batched_tokens)  # each takes a token or more
    if n:
        # Every request holds its prompt and a token, in whole blocks, or more.
        smallest = min(instance.prefill.tolist()) + 1
        blocks = -(-smallest // engine.block_size)
        limits.append(instance.kv_budget // engine.block_size // blocks)
    return min(limits)
