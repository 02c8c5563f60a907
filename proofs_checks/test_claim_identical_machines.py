"""Claim: shortest first on `K` identical machines bounds every schedule of an engine.

At most `K` requests run in a step, and a request is served in `o + ceil(s / B) - 1`
different steps or more, if a step processes at most `B` tokens. So a schedule with
evictions and pauses is one of `K` identical machines with interruptions, on which
shortest first has the least sum of completions, interrupted or not (McNaughton,
Management Science 6, 1959). *Where only `K` binds*, shortest answer first attains it:
the bound is the optimum.

*Weak* where memory binds: it knows nothing of it. `n` requests of one token that fill
the memory take `n (n + 1) / 2` steps, and with `K = n` it proves `n`.

*Assumption.* All requests are there at the start. With arrivals the bound holds less
their sum, as setting them to 0 excludes no schedule; the least sum with arrivals and
interruptions is NP-hard on two machines already (Du, Leung, Young, Theoretical Computer
Science 75, 1990).

Proved there and in `sortedf.bounds.machines`. Sampled here: tiny engines against the
best of all schedules, and equality where memory and tokens suffice.
"""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from proofs_checks.engines import Lengths, optimum, random_engine, random_lengths
from sortedf.engine_model import EngineModel


def shortest_first(lengths: Lengths, engine: EngineModel) -> int:
    """Least sum of completions on `K` machines."""
    cap = engine.tokens_cap
    times = sorted(o + -(-s // cap) - 1 for s, o in lengths)
    free = [0] * min(engine.seqs_cap, len(lengths))
    heapify(free)
    total = 0
    for time in times:
        end = free[0] + time
        heapreplace(free, end)
        total += end
    return total


def test_no_schedule_is_below_it() -> None:
    """One to three requests on engines with every kind of limit."""
    rng = np.random.default_rng(13)
    for _ in range(1000):
        lengths = random_lengths(rng, int(rng.integers(1, 4)), 2)
        engine = random_engine(rng, lengths)
        assert shortest_first(lengths, engine) <= optimum(lengths, engine)


def test_it_is_the_optimum_where_only_requests_are_limited() -> None:
    """Memory and tokens for all of them."""
    rng = np.random.default_rng(14)
    for _ in range(40):
        lengths = random_lengths(rng, 3, 2)
        engine = EngineModel.vllm(100, max_num_seqs=int(rng.integers(1, 4)))
        assert shortest_first(lengths, engine) == optimum(lengths, engine)


def test_it_is_weak_where_memory_binds() -> None:
    """One request at a time fits."""
    engine = EngineModel.vllm(4, max_num_seqs=4)
    assert optimum([(4, 1)] * 4, engine) == 10
    assert shortest_first([(4, 1)] * 4, engine) == 4
