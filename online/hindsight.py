"""Lower bounds on the latency of a run, given all its arrivals and lengths.

If steps differ in length, the bound is the one in seconds (`sortedf.bounds.seconds`),
which uses the engine's rules and holds for every run. The bounds of `sortedf.bound` are
for steps of equal length and for a KV usage of `s + j` tokens in the step of token `j`.
Three arguments make them valid for a run.

- The engine's rules charge `s + j - 1` tokens: prompts are shortened by one token. For
  a prompt of one token the first output token is left out instead.
- Arrivals between two steps: each step is moved to the integer at or before its end.
  Steps stay distinct and in order, so a run of arrivals `a` becomes one of arrivals
  `floor(a)`, whose total latency is at most that of the run plus the sum of
  `a - floor(a)`.
- Preemption: let `t_1 < ... < t_o = C` be the steps that made a request's final tokens.
  As `t_j <= C - (o - j)`, the volume-weighted middle of these steps lies at least
  `o - e` before `C` (`e` as in `sortedf.bounds.fluid`), and the KV in them is at most
  `M` together with other requests. The fluid bound needs nothing else, so it holds for
  runs with preemption. The other bounds need tokens in consecutive steps and are used
  only for runs in which every answer was made without a pause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.bounds import BOUNDS, bound
from sortedf.bounds.seconds import seconds_bound
from sortedf.engine_model import EngineModel
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.instance import Instance

if TYPE_CHECKING:
    from online.run_log import RunLog
    from sortedf.step_time import StepTime


@dataclass(frozen=True, slots=True)
class HindsightBound:
    """A lower bound on the total latency of a run's completed requests.

    Attributes
    ----------
    total_s : float, optional
        In seconds, or in steps with unit steps; None if none was requested.
    method : str
        Name of the bound, or "none".
    """

    total_s: float | None
    method: str

    def gap_of(self, total_s: float) -> float | None:
        """Relative distance of a total latency from it; None without a bound."""
        return None if self.total_s is None else total_s / self.total_s - 1


def hindsight_bound(
    log: RunLog,
    rules: EngineModel,
    step_time: StepTime,
    method: str = "fluid",
    *,
    evictions: bool = False,
) -> HindsightBound:
    """Bound the total latency of a run from below.

    Parameters
    ----------
    log : RunLog
    rules : EngineModel
    step_time : StepTime
    method : str
        A name in `sortedf.BOUNDS`, "auto", or "none". If answers were interrupted,
        "fluid" is used instead, and if steps differ in length, the bound in seconds.
        "auto" is the better of that and of the bound in steps.
    evictions : bool
        Whether the bound must hold for runs with evictions even if this run had none,
        because it is compared with such runs.
    """
    if method == "none":
        return HindsightBound(None, "none")
    if method != "auto":
        BOUNDS.find(method, also=("auto", "none"))
    if rules.prefix_caching:  # requests may hold and compute less than their lengths
        return HindsightBound(None, "none with prefix caching")
    found = []
    if step_time.is_constant:
        method_of_steps = "fluid" if evictions or len(log.pauses) else method
        found.append(_bound_of_equal_steps(log, rules, step_time, method_of_steps))
    if method == "auto" or not step_time.is_constant:
        found.append(_bound_in_seconds(log, rules, step_time))
    return HindsightBound(*max(found, key=lambda pair: pair[0]))


def _bound_in_seconds(
    log: RunLog, rules: EngineModel, step_time: StepTime
) -> tuple[float, str]:
    done = log.completed
    lengths = log.prefill[done], log.decode[done]
    arrival_s = log.arrival_s[done]
    found = seconds_bound(EngineWorkload(*lengths, rules, (step_time,), arrival_s))
    return found.total_s, found.method


def _bound_of_equal_steps(
    log: RunLog, rules: EngineModel, step_time: StepTime, method: str
) -> tuple[float, str]:
    arrival = log.arrival_s / step_time.constant_s
    floor = np.floor(arrival)
    done = log.completed
    steps, method = _bound_in_steps(log, floor.astype(np.int64), rules, method)
    steps -= float((arrival - floor)[done].sum())
    return steps * step_time.constant_s, method


def _bound_in_steps(
    log: RunLog, arrival: np.ndarray, rules: EngineModel, method: str
) -> tuple[float, str]:
    done = log.completed
    prefill, decode, arrival = log.prefill[done], log.decode[done], arrival[done]
    shorter = 1 - rules.extra_slots
    is_one = (prefill == 1) & (shorter == 1)
    prefill = np.maximum(prefill - shorter, 1)
    decode = decode - is_one
    # A request of one prompt and one output token is charged in no step.
    some = decode > 0
    instance = Instance(
        prefill[some],
        decode[some],
        arrival=arrival[some],
        engine=EngineModel(rules.kv_budget, rules.block_size),
    )
    found = bound(instance, method)
    # A request whose first token was left out may start a step after its arrival.
    return found.value + float((~some).sum()), found.method
