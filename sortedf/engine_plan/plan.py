"""A plan for an engine: the step and the order of each request's admission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.engine_plan import plan_kernels as k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_plan.workload import EngineWorkload

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CUTS = 4
"""Limit on a prompt's steps, as a multiple of those of the longest prompt alone."""

SLACK_STEPS = 64
"""Steps that a request may take beyond its answer and the cuts of its prompt."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules by which an order becomes a plan.

    Attributes
    ----------
    backfill : int
        Largest number of requests that do not fit and are passed over in a step.
    allowance : float
        Prompt tokens that each step adds to a budget of starts; infinite for no limit.
        A start spends its prompt, and none happens while the budget is overdrawn and
        any request runs: this spaces long prompts, so that answers are not delayed.
    places : float
        Largest number of running requests at the start, and times the root of the share
        of requests that wait later on: the more wait, the longer a step may be whose
        constant its requests share. Infinite for no limit but the engine's.
    """

    backfill: int = 0
    allowance: float = np.inf
    places: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class EnginePlan:
    """A plan for an engine and a workload, with its completions.

    Attributes
    ----------
    workload : EngineWorkload
    start : int64 array, shape (n,)
        Steps before the request's admission: it first runs in step `start + 1`. No
        steps are counted while the engine waits for arrivals.
    order : int64 array, shape (n,)
        Ids in order of admission, which is the order of service in a step.
    completion : int64 array, shape (n,)
        Step of the last token.
    completion_s : float64 array, shape (n,)
        End of that step.
    admission : Admission
        Rules of admission of the plan.
    """

    workload: EngineWorkload
    start: Ints
    order: Ints
    completion: Ints
    completion_s: Floats
    admission: Admission

    @property
    def latency_s(self) -> Floats:
        """End-to-end latency of each request."""
        return np.asarray(self.completion_s - self.workload.arrival_s)

    @property
    def total_s(self) -> float:
        """Total latency, the objective."""
        return float(self.latency_s.sum())

    @property
    def mean_s(self) -> float:
        """Mean latency."""
        return self.total_s / max(self.workload.num_requests, 1)

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return int(self.completion.max(initial=0))


def most_running(plan: EnginePlan) -> int:
    """Largest number of requests that run in one step of a plan."""
    change = np.zeros(plan.num_steps + 2, dtype=np.int64)
    np.add.at(change, plan.start + 1, 1)
    np.add.at(change, plan.completion + 1, -1)
    return int(np.cumsum(change).max())


class Follower:
    """Evaluates orders of one workload; keeps the data common to all of them."""

    def __init__(self, workload: EngineWorkload) -> None:
        workload.refuse_unplanned()
        self.workload = workload
        rules = workload.rules
        self._rules = np.zeros(k.NUM_RULES, dtype=np.int64)
        self._rules[k.BLOCK_SIZE] = rules.block_size
        self._rules[k.BLOCKS] = rules.num_blocks
        self._rules[k.MAX_SEQS] = rules.seqs_cap
        self._rules[k.MAX_TOKENS] = rules.tokens_cap
        self._rules[k.CHUNKED] = rules.chunked_prefill
        self._rules[k.WATERMARK] = rules.watermark_blocks
        self._rules[k.EXTRA] = rules.extra_slots
        self._times = np.array(
            [
                (t.constant_s, t.prefill_token_s, t.running_s, t.kv_token_s)
                for t in workload.step_times
            ]
        )
        longest = int(workload.prefill.max(initial=1))
        cuts = CUTS * -(-longest // rules.tokens_cap)
        self._span = int(workload.decode.max(initial=1)) + cuts + SLACK_STEPS
        n = workload.num_requests
        self._start, self._completion = (np.zeros(n, dtype=np.int64) for _ in "sc")
        self._completion_s = np.zeros(n)

    def total_s(
        self, order: Ints, admission: Admission, stop_above: float = np.inf
    ) -> float:
        """Total latency of an order; infinite if it is above a limit."""
        w = self.workload
        return k.follow(
            order, w.prefill, w.decode, w.arrival_s, self._rules, self._times,
            admission.backfill, admission.allowance, admission.places, self._span,
            stop_above, self._start, self._completion, self._completion_s,
        )  # fmt: skip

    def plan(self, order: Ints, admission: Admission) -> EnginePlan:
        """Return the plan of an order."""
        if not np.isfinite(self.total_s(order, admission)):
            raise RuntimeError("an order came to nothing: a request never fits.")
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        return EnginePlan(
            self.workload,
            self._start - 1,
            np.lexsort((position, self._start)),
            self._completion.copy(),
            self._completion_s.copy(),
            admission,
        )
