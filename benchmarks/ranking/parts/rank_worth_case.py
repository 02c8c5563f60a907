"""One simulated run of the benchmarks about ranks: requests, an engine, an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.kendall import tau_b
from online.metrics import normalised_latency_s, ttft_s, ttlt_s
from online.simulator import simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.common.registry import Row
    from benchmarks.ranking.parts.rank_worth_traces import Workload
    from sortedf.traces import Trace

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

BURST = 2000
NEVER_S = 1e9
PAPERS_S = 120.0
"""Wait in seconds after which a request goes first: none, or the PARS paper's."""


def limit_of(starvation_s: float) -> float | None:
    """Return the limit as text for rows and tables."""
    return None if starvation_s == NEVER_S else starvation_s


def key(where: Row, *what: object) -> str:
    """Name a run in the journal."""
    come = "burst" if where["load"] is None else f"load {where['load']}"
    parts = (where["part"], where["workload"], come, f"seed {where['seed']}", *what)
    return ", ".join(map(str, parts))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Requests with arrivals, on their engine.

    Attributes
    ----------
    trace : Trace
    workload : Workload
    where : dict
        Entries of every row of this case.
    """

    trace: Trace
    workload: Workload
    where: Row

    def row(
        self,
        policy: str,
        options: dict[str, Any],
        score: Floats | None = None,
        predicted: Ints | None = None,
        **what: Any,
    ) -> Row:
        """Simulate and measure."""
        engine = self.workload.engine
        log = simulate(
            self.trace,
            policy,
            engine.rules,
            step_time=engine.step_time,
            score=score,
            predicted=predicted,
            options=options,
        )
        per_token, latency = normalised_latency_s(log), ttlt_s(log)
        known = {} if score is None else {"tau_b": tau_b(self.trace.decode, score)}
        return {
            **self.where,
            **what,
            **known,
            "mean_ttft": float(ttft_s(log).mean()),
            "mean_per_token": float(per_token.mean()),
            "p90_per_token": float(np.quantile(per_token, 0.9)),
            "mean_latency": float(latency.mean()),
            "p90_latency": float(np.quantile(latency, 0.9)),
            "longest_latency": float(latency.max()),
            "makespan": float(log.steps.end_s[-1]),
            "preemptions": int(log.steps.preemptions.sum()),
            "recomputed_tokens": int(log.recomputed_tokens.sum()),
        }
