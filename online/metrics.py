"""Latency and throughput metrics of a run, computed from its log alone.

Symbols: request `i` arrives at `a`, starts at `b`, makes its first token at `f` and its
last, the `o`-th, at `c`. All times are in seconds, or in steps with unit steps.

- TTFT: `f - a`.
- TTLT, the latency: `c - a`.
- TPOT: `(c - f) / (o - 1)`, one figure for each request with two tokens or more.
- TBT: the time from each token to the next, one figure for each token but the first.
- Normalised latency: `(c - a) / o`.
- Slowdown: `(c - a)` divided by the latency of the request alone in the engine.
- Fairness: Jain's index `(sum x)^2 / (n sum x^2)` of `x = 1 / slowdown`, the speed at
  which each request was served; 1 if all slowdowns are equal.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.alone import alone_s
from online.distribution import Distribution, DistributionSummary
from online.hindsight import hindsight_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.run_log import RunLog
    from sortedf.engine_model import EngineModel
    from sortedf.step_time import StepTime

    Floats = NDArray[np.float64]


def ttft_s(log: RunLog) -> Floats:
    """Time to the first token of each completed request."""
    return np.asarray((log.first_token_s - log.arrival_s)[log.completed])


def ttlt_s(log: RunLog) -> Floats:
    """Time to the last token of each completed request."""
    return np.asarray((log.completion_s - log.arrival_s)[log.completed])


def normalised_latency_s(log: RunLog) -> Floats:
    """TTLT per output token, of each completed request."""
    return np.asarray(ttlt_s(log) / log.decode[log.completed])


def tpot_s(log: RunLog) -> Floats:
    """Time per token after the first, of each request with two tokens or more."""
    some = log.completed & (log.decode > 1)
    spent = log.completion_s[some] - log.first_token_s[some]
    return np.asarray(spent / (log.decode[some] - 1))


def tbt(log: RunLog) -> Distribution:
    """Distribution of the times between tokens.

    Each token of a step follows one of the previous step unless it is a request's first
    or ends a pause, so counts per step determine the distribution.
    """
    ends = log.steps.end_s
    follow = log.steps.output_tokens.copy()
    first = log.first_token_step[log.first_token_step > 0]
    np.subtract.at(follow, first - 1, 1)
    np.subtract.at(follow, log.pauses[:, 2] - 1, 1)
    between = np.diff(ends, prepend=0.0)
    pauses = ends[log.pauses[:, 2] - 1] - ends[log.pauses[:, 1] - 1]
    return Distribution(
        np.concatenate([between, pauses]),
        np.concatenate([follow, np.ones(len(pauses), dtype=np.int64)]),
    )


def slowdown(log: RunLog, rules: EngineModel, step_time: StepTime) -> Floats:
    """TTLT divided by the latency alone, of each completed request; at least 1."""
    done = log.completed
    return np.asarray(
        ttlt_s(log) / alone_s(log.prefill[done], log.decode[done], rules, step_time)
    )


def longest_wait_s(log: RunLog) -> float:
    """Longest time from an arrival to the start, or from one token to the next."""
    queued = (log.start_s - log.arrival_s)[log.start_step > 0]
    between = tbt(log).value[-1:]
    return float(np.concatenate([[0.0], queued, between]).max())


def hit_rate(log: RunLog) -> float:
    """Share of the tokens of prompts and of recomputed ones that was in the cache."""
    needed = int(log.prefill[log.start_step > 0].sum() + log.recomputed_tokens.sum())
    return int(log.cached_tokens.sum()) / max(needed, 1)


def jain(share: Floats) -> float:
    """Jain's fairness index: 1 if all are equal, `1 / n` if all but one are 0."""
    if not len(share):
        return 1.0
    return float(share.sum() ** 2 / (len(share) * (share**2).sum()))


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of one run.

    Attributes
    ----------
    requests, completed, refused : int
        Numbers of all, completed and refused requests.
    steps : int
    mean_latency, total_latency, makespan : float
        Mean and total TTLT; time of the last token from the first arrival.
    ttft, tbt, tpot, ttlt, normalised_latency, slowdown : DistributionSummary, optional
        None if there are no observations.
    throughput, requests_per_s : float
        Output tokens, and requests completed, per unit of the makespan.
    fairness : float
    longest_wait : float
    preemptions, evictions, recomputed_tokens : int
        KV losses for lack of free blocks, and by the policy; tokens computed again.
    cached_tokens : int
        Tokens whose KV was found in the cache and not computed.
    hit_rate : float
        Share of them among the tokens of started prompts and the recomputed ones.
    mean_kv_use : float
        Share of KV blocks in use, averaged over time.
    lower_bound, gap : float, optional
        Bound on the total latency in hindsight; relative distance to it.
    bound_method : str
        Name of the bound, or the reason why there is none.
    """

    requests: int
    completed: int
    refused: int
    steps: int
    mean_latency: float
    total_latency: float
    makespan: float
    ttft: DistributionSummary | None
    tbt: DistributionSummary | None
    tpot: DistributionSummary | None
    ttlt: DistributionSummary | None
    normalised_latency: DistributionSummary | None
    slowdown: DistributionSummary | None
    throughput: float
    requests_per_s: float
    fairness: float
    longest_wait: float
    preemptions: int
    evictions: int
    recomputed_tokens: int
    cached_tokens: int
    hit_rate: float
    mean_kv_use: float
    lower_bound: float | None
    gap: float | None
    bound_method: str

    def as_dict(self) -> dict[str, Any]:
        """All metrics as plain values, for JSON."""
        return asdict(self)


def measure(
    log: RunLog, rules: EngineModel, step_time: StepTime, *, bound: str = "none"
) -> Metrics:
    """Compute the metrics of a run.

    Parameters
    ----------
    log : RunLog
    rules : EngineModel
        The engine's rules, for the latency alone and the bound.
    step_time : StepTime
        Step time of the run's clock.
    bound : str
        "none", "fluid", "dual", ...; see `online.hindsight`.

    Raises
    ------
    ValueError
        If no request was completed.
    """
    done = log.completed
    if not done.any():
        raise ValueError("there is nothing to measure: no request was completed.")
    latency = ttlt_s(log)
    total = float(latency.sum())
    makespan = float(log.steps.end_s[-1] - log.arrival_s.min())
    slowed = slowdown(log, rules, step_time)
    found = hindsight_bound(log, rules, step_time, bound)
    return Metrics(
        requests=len(log.decode),
        completed=int(done.sum()),
        refused=len(log.refused),
        steps=log.num_steps,
        mean_latency=total / int(done.sum()),
        total_latency=total,
        makespan=makespan,
        ttft=Distribution(ttft_s(log)).summary(),
        tbt=tbt(log).summary(),
        tpot=Distribution(tpot_s(log)).summary(),
        ttlt=Distribution(latency).summary(),
        normalised_latency=Distribution(normalised_latency_s(log)).summary(),
        slowdown=Distribution(slowed).summary(),
        throughput=float(log.decode[done].sum()) / makespan,
        requests_per_s=int(done.sum()) / makespan,
        fairness=jain(1 / slowed),
        longest_wait=longest_wait_s(log),
        preemptions=int(log.steps.preemptions.sum()),
        evictions=int(log.steps.evictions.sum()),
        recomputed_tokens=int(log.recomputed_tokens.sum()),
        cached_tokens=int(log.cached_tokens.sum()),
        hit_rate=hit_rate(log),
        mean_kv_use=_mean_kv_use(log, rules),
        lower_bound=found.total_s,
        gap=found.gap_of(total),
        bound_method=found.method,
    )


def _mean_kv_use(log: RunLog, rules: EngineModel) -> float:
    steps = log.steps
    duration = steps.end_s - steps.begin_s
    span = steps.end_s[-1] - steps.begin_s[0]
    # Not by `@`, whose rounding depends on the number of threads.
    return float((steps.used_blocks * duration).sum() / span / rules.num_blocks)
