"""Offered load: work of the arriving requests relative to an engine's capacity.

For requests `i` with prompts `s` and answers `o`, an engine with budget `M` needs at
least

    N = max(sum v / M, sum (s + o - 1) / max_batched_tokens, sum o / max_num_seqs)

steps, with `v = s o + o (o - 1) / 2` the KV that a request reads, summed over its steps
(it holds `o` more if the token just made counts as well), and so is busy for at least

    W = constant * N + prefill_token * sum s + running * sum (o - 1) + kv_token * sum v

seconds. The load is `W` divided by the time in which the requests arrive. In unit steps
without caps that is `sum v / (M * duration)`, the fluid model's load: at load 1, work
arrives as fast as a full cache can serve it, so real schedules are overloaded at
slightly lower loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime
    from sortedf.traces.trace import Trace


def busy_s(trace: Trace, rules: EngineModel, step_time: StepTime) -> float:
    """Least time `W` in seconds for which a trace keeps an engine busy.

    Requests that can never run are not counted.
    """
    pairs = zip(trace.prefill.tolist(), trace.decode.tolist(), strict=True)
    runs = np.array([rules.refusal(*pair) is None for pair in pairs])
    s = trace.prefill[runs].astype(np.float64)
    o = trace.decode[runs].astype(np.float64)
    kv = float((s * o + o * (o - 1) / 2).sum())
    held = kv + rules.extra_slots * float(o.sum())
    tokens = float((s + o - 1).sum())
    steps = max(
        held / (rules.num_blocks * rules.block_size),
        tokens / rules.tokens_cap,
        float(o.sum()) / rules.seqs_cap,
    )
    return (
        step_time.constant_s * steps
        + step_time.prefill_token_s * float(s.sum())
        + step_time.running_s * float((o - 1).sum())
        + step_time.kv_token_s * kv
    )


def rate_of_load(
    load: float, trace: Trace, rules: EngineModel, step_time: StepTime
) -> float:
    """Return the requests per second at which a trace has the given load."""
    if not 0 < load < np.inf:
        raise ValueError(f"load = {load} but must be a number above 0.")
    busy = busy_s(trace, rules, step_time)
    if not busy:
        raise ValueError(f"{trace.name or 'the trace'}: no request can ever run.")
    return load * trace.num_requests / busy


def load_of_rate(
    rate: float, trace: Trace, rules: EngineModel, step_time: StepTime
) -> float:
    """Return the load of a trace whose requests arrive at a rate per second."""
    return rate * busy_s(trace, rules, step_time) / trace.num_requests


def offered_load(trace: Trace, rules: EngineModel, step_time: StepTime) -> float:
    """Load of a trace with its own arrivals; infinite for a backlog."""
    last = float(trace.arrival_s.max())
    return busy_s(trace, rules, step_time) / last if last else np.inf
