"""The independent checker of plans: a slow engine in plain Python.

It shares no code with the planner. It runs each step by the rules, request by request,
admits requests as planned, and reports every violation: a request that does not fit in
its step, that has not arrived yet, or that would be evicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortedf.engine_model import EngineModel
    from sortedf.engine_plan.workload import EngineWorkload

MAX_TOLD = 100
"""Largest number of violations described in a report; all are counted."""


@dataclass(slots=True)
class _Request:
    prefill: int
    decode: int
    arrival_s: float
    computed: int = 0
    output_tokens: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Result of the checker.

    Attributes
    ----------
    feasible : bool
        Whether the plan can be followed without violations.
    total_s : float
        Total latency, recomputed; None unless feasible.
    completion : tuple of int
        Step of each request's last token; 0 for requests that did not complete.
    completion_s : tuple of float
        End of that step; 0 likewise.
    num_steps : int
    peak_blocks : int
        Most blocks in use in any step.
    num_violations : int
    violations : tuple of str
        The first `MAX_TOLD` of them.
    """

    feasible: bool
    total_s: float | None
    completion: tuple[int, ...]
    completion_s: tuple[float, ...]
    num_steps: int
    peak_blocks: int
    num_violations: int
    violations: tuple[str, ...]


@dataclass(slots=True)
class _Engine:
    """One run: waiting and running requests, the clock, and violations."""

    workload: EngineWorkload
    requests: list[_Request]
    planned: dict[int, list[int]]
    running: list[int] = field(default_factory=list)
    step: int = 0
    now_s: float = 0.0
    used: int = 0
    peak: int = 0
    completion: list[int] = field(default_factory=list)
    completion_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def rules(self) -> EngineModel:
        return self.workload.rules

    def blocks(self, tokens: int) -> int:
        size = self.rules.block_size
        return (tokens + size - 1) // size

    def hold(self, request: _Request, blocks: int) -> None:
        self.used += blocks - request.blocks
        request.blocks = blocks

    def wait_for_arrivals(self) -> None:
        """Advance the clock to the first planned arrival if nothing runs."""
        due = self.planned.get(self.step, [])
        if due and not self.running:
            soonest = min(self.requests[i].arrival_s for i in due)
            self.now_s = max(self.now_s, soonest)

    def serve(self, served: dict[int, int]) -> int:
        """Serve running requests in order; return the tokens left in the step."""
        left = self.rules.tokens_cap
        for i in self.running:
            request = self.requests[i]
            new = min(request.prefill + request.output_tokens - request.computed, left)
            need = self.blocks(request.computed + new + self.rules.extra_slots)
            if self.used - request.blocks + need > self.rules.num_blocks:
                self.wrong.append(
                    f"step {self.step + 1}: no block is left for request {i}, which "
                    "runs: one would be evicted"
                )
            self.hold(request, max(request.blocks, need))
            if new:
                served[i] = new
            left -= new
        return left

    def admit(self, left: int, served: dict[int, int]) -> None:
        """Admit the requests planned for this step, in order."""
        for i in self.planned.pop(self.step, []):
            request, rules = self.requests[i], self.rules
            new = min(request.prefill, left)
            free = rules.num_blocks - self.used
            free -= rules.watermark_blocks if self.running else 0
            need = self.blocks(new + rules.extra_slots)
            reasons = []
            if request.arrival_s > self.now_s:
                reasons.append(f"it comes at {request.arrival_s} s, after {self.now_s}")
            if len(self.running) >= rules.seqs_cap:
                reasons.append(f"{len(self.running)} requests run")
            if left == 0 or (new < request.prefill and not rules.chunked_prefill):
                reasons.append(f"{left} tokens are left of the step")
            if need > free or (
                rules.reserve_prompt and self.blocks(request.prefill) > free
            ):
                reasons.append(f"{free} blocks may be taken")
            if reasons:
                self.wrong.append(
                    f"step {self.step + 1}: request {i} of {request.prefill} prompt "
                    f"tokens cannot be admitted: {'; '.join(reasons)}"
                )
            self.hold(request, need)
            self.running.append(i)
            if new:
                served[i] = new
            left -= new

    def do_step(self) -> None:
        """Run one step and advance the clock by its duration."""
        served: dict[int, int] = {}
        self.admit(self.serve(served), served)
        self.peak = max(self.peak, self.used)
        prompt = decoding = 0
        for i, new in served.items():
            request = self.requests[i]
            rest = request.prefill + request.output_tokens - request.computed
            if rest > 1:
                prompt += new
            else:
                decoding += new
            request.computed += new
            request.output_tokens += new == rest
        read = sum(self.requests[i].computed for i in self.running)
        self.step += 1
        self.now_s += self.workload.step_s(prompt, decoding, read)
        for i in list(self.running):
            if self.requests[i].output_tokens == self.requests[i].decode:
                self.running.remove(i)
                self.hold(self.requests[i], 0)
                self.completion[i] = self.step
                self.completion_s[i] = self.now_s


def check_plan(
    workload: EngineWorkload, start: Sequence[int], order: Sequence[int]
) -> PlanReport:
    """Verify a plan step by step and recompute its latency.

    Parameters
    ----------
    workload : EngineWorkload
    start : sequence of int, length n
        Steps before each request's admission.
    order : sequence of int, length n
        All ids, in the order of admission.

    Raises
    ------
    ValueError
        If `start` has an entry below 0 or the wrong length, `order` does not name each
        request once, or the engine has rules that plans do not support.

    Examples
    --------
    >>> from sortedf.engine_model import EngineModel
    >>> from sortedf.engine_plan.workload import EngineWorkload
    >>> rules = EngineModel.vllm(kv_budget=20, max_batched_tokens=4)
    >>> workload = EngineWorkload([6, 2], [2, 2], rules)
    >>> check_plan(workload, [0, 1], [0, 1]).completion
    (3, 3)
    >>> check_plan(workload, [0, 0], [0, 1]).feasible
    False
    """
    workload.refuse_unplanned()
    start, order = [int(t) for t in start], [int(i) for i in order]
    n = workload.num_requests
    if sorted(order) != list(range(n)):
        raise ValueError(f"order must name each request from 0 to {n - 1} once.")
    if len(start) != n or min(start, default=0) < 0:
        raise ValueError(f"start must hold {n} steps, 0 or more.")
    planned: dict[int, list[int]] = {}
    for i in order:
        planned.setdefault(start[i], []).append(i)
    lengths = zip(
        workload.prefill.tolist(),
        workload.decode.tolist(),
        workload.arrival_s.tolist(),
        strict=True,
    )
    engine = _Engine(workload, [_Request(*each) for each in lengths], planned)
    engine.completion, engine.completion_s = [0] * n, [0.0] * n
    while (planned or engine.running) and len(engine.wrong) < MAX_TOLD:
        engine.wait_for_arrivals()
        if not engine.running and engine.step not in planned:
            engine.wrong.append(
                f"step {engine.step + 1}: nothing runs and nothing is to be admitted, "
                "so that there is no such step"
            )
            break
        engine.do_step()
    feasible = not engine.wrong
    pairs = zip(engine.completion_s, workload.arrival_s.tolist(), strict=True)
    return PlanReport(
        feasible=feasible,
        total_s=sum(end - begin for end, begin in pairs) if feasible else None,
        completion=tuple(engine.completion),
        completion_s=tuple(engine.completion_s),
        num_steps=engine.step,
        peak_blocks=engine.peak,
        num_violations=len(engine.wrong),
        violations=tuple(engine.wrong[:MAX_TOLD]),
    )
