"""Gain of shortest first in an infinite burst, computed from the lengths alone.

With many more requests than can run at once, a request's latency is its wait, which is
the work of all requests served before it. A request's work is its share of the least
seconds for which an engine is busy (`sortedf.load`), in the resource that binds. Under
first come first served it waits for half of all work on average, whatever its own
length `o`; under shortest first for the work of the shorter ones. Per token both are
divided by `o`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PLACES = 200
"""Positions in the queue at which a first come first served request is evaluated."""


def work_s(
    prefill: Ints, decode: Ints, rules: EngineModel, step_time: StepTime
) -> Floats:
    """Seconds that each request adds to the engine's least busy time."""
    s, o = prefill.astype(np.float64), decode.astype(np.float64)
    kv = s * o + o * (o - 1) / 2 + rules.extra_slots * o
    steps = max(
        kv / (rules.num_blocks * rules.block_size),
        (s + o - 1) / rules.tokens_cap,
        o / rules.seqs_cap,
        key=lambda term: float(term.sum()),
    )
    return np.asarray(
        step_time.constant_s * steps
        + step_time.prefill_token_s * s
        + step_time.running_s * (o - 1)
        + step_time.kv_token_s * kv
    )


def limits(decode: Ints, work: Floats) -> dict[str, float]:
    """How many times smaller shortest first makes each figure.

    Returns
    -------
    dict of str to float
        By the names of `FIGURES`.
    """
    total = float(work.sum())
    order = np.argsort(decode, kind="stable")
    wait = np.empty(len(work))
    wait[order] = np.cumsum(work[order]) - work[order] / 2
    position = (np.arange(PLACES) + 0.5) / PLACES
    of_fcfs = np.outer(position * total, 1 / decode)
    of_shortest = wait / decode
    return {
        "mean_per_token": float(of_fcfs.mean() / of_shortest.mean()),
        "p90_per_token": float(
            np.quantile(of_fcfs, 0.9) / np.quantile(of_shortest, 0.9)
        ),
        "mean_latency": total / 2 / float(wait.mean()),
    }
