"""Runs an engine by a schedule or a policy, and compares it with a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from online.driver import drive
from online.executor.planning import cut_prompts, engine_plan_for, plan_for
from online.policy import make_policy
from online.requests import RequestTable
from online.step_engine import StepEngine, StepRecord
from sortedf.engine_plan.plan import EnginePlan
from sortedf.methods import METHODS
from sortedf.step_time import UNIT_STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.prompt_chains import PromptChains
    from online.run_log import RunLog
    from online.state import Policy
    from online.step_engine import Engine
    from sortedf.engine_model import EngineModel
    from sortedf.request_set import RequestSet
    from sortedf.schedule import Schedule
    from sortedf.traces.sessions import Sessions

Mode = Literal["plan", "list", "policy"]
Watcher: TypeAlias = Callable[[StepRecord, float], None]
MODES: tuple[Mode, ...] = ("plan", "list", "policy")


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """Plan, predicted run and actual run.

    Attributes
    ----------
    log : RunLog
        Run of the engine.
    predicted : RunLog
        Run of the step engine with the same policy and rules.
    plan : Schedule or EnginePlan, optional
        The offline schedule, if one was followed.
    rules : EngineModel
        The engine's rules.
    """

    log: RunLog
    predicted: RunLog
    plan: Schedule | EnginePlan | None
    rules: EngineModel

    @property
    def predicted_completion_s(self) -> NDArray[np.float64]:
        """Completion of each request by the plan, or else by the step engine."""
        if isinstance(self.plan, EnginePlan):
            return self.plan.completion_s
        if self.plan is not None:
            return self.plan.completion.astype(np.float64)
        return self.predicted.completion_s

    @property
    def steps_matching(self) -> int:
        """Number of requests that completed exactly in the predicted step."""
        same = self.log.completion_s == self.predicted_completion_s
        return int(np.count_nonzero(same & self.log.completed))


@dataclass(frozen=True, slots=True, eq=False)
class RunPlan:
    """How an engine runs requests: a new policy object for each run.

    Attributes
    ----------
    make_policy : callable
        Creates the policy; one object is used for one run.
    plan : Schedule or EnginePlan, optional
        The schedule whose starts it follows, if any.
    """

    make_policy: Callable[[], Policy]
    plan: Schedule | EnginePlan | None = None


def plan_run(
    requests: RequestSet,
    rules: EngineModel,
    method: str = "auto",
    *,
    mode: Mode = "plan",
    **options: Any,
) -> RunPlan:
    """Plan how an engine runs requests.

    Parameters
    ----------
    requests : RequestSet
        Lengths and arrivals in steps.
    rules : EngineModel
    method : str
        For "plan" and "list" a name in `sortedf.METHODS`, for "policy" one in
        `online.policy.POLICIES`.
    mode : {"plan", "list", "policy"}
        Start each request in its planned step; start them in the planned order, each as
        soon as look-ahead admits it; or let an online policy decide.
    **options
        For "plan" and "list" options of `sortedf.solve`, for "policy" the policy's.

    Raises
    ------
    ValueError
        If the mode or the method is unknown, or an option out of range.
    """
    # Prompts of a run share prefixes only under a policy, which finds them itself.
    rules = replace(rules, prefix_caching=False)
    if mode == "policy":
        make_policy(method, **options)  # raises for bad options before the run
        return RunPlan(lambda: make_policy(method, **options))
    if mode == "plan" and cut_prompts(requests, rules):
        return follow_plan(engine_plan_for(requests, rules, method, **options))
    METHODS.find(method)
    if mode == "plan":
        plan = plan_for(requests, rules, method, **options)
        starts = plan.start
        return RunPlan(lambda: make_policy("plan", start_s=starts), plan)
    if mode == "list":
        backfill = options.get("backfill") or 0
        order = _order_of(requests, rules, method, **options)
        return RunPlan(lambda: make_policy("list", order=order, backfill=backfill))
    raise ValueError(f"mode = {mode!r} but must be one of: {', '.join(MODES)}.")


def follow_plan(plan: EnginePlan) -> RunPlan:
    """Follow a plan for an engine, each request in its step."""
    start, order = plan.start, plan.order
    return RunPlan(lambda: make_policy("plan-steps", start=start, order=order), plan)


def _order_of(
    requests: RequestSet, rules: EngineModel, method: str, **options: Any
) -> NDArray[np.int64]:
    """Order of the starts of a schedule in which prompts are never cut."""
    whole = replace(rules, max_batched_tokens=None)
    start = plan_for(requests, whole, method, **options).start
    return np.asarray(np.lexsort((np.arange(len(start)), start)))


def execute_plan(
    plan: RunPlan,
    requests: RequestSet,
    engine: Callable[[RequestTable, Policy], Engine],
    *,
    chains: PromptChains | None = None,
    sessions: Sessions | None = None,
    watch: Callable[[RunLog], Watcher] | None = None,
) -> Execution:
    """Run requests in the step engine, then in an engine.

    Parameters
    ----------
    plan : RunPlan
    requests : RequestSet
    engine : callable
        Creates the engine for a table and a policy.
    chains : PromptChains, optional
        Shared prefixes of prompts, for an engine with prefix caching.
    sessions : Sessions, optional
        Turns that follow others, with think times in steps.
    watch : callable, optional
        Called with the predicted run; returns a function that is called after each step
        of the engine as `watcher(record, end_s)`.
    """
    tables = [RequestTable.of_instance(requests) for _ in range(2)]
    for table in tables:
        table.chains, table.sessions = chains, sessions
    running = engine(tables[0], plan.make_policy())
    twin = StepEngine(tables[1], running.rules, plan.make_policy())
    predicted = drive(twin)
    watcher = None if watch is None else watch(predicted)
    log = drive(running, step_time=UNIT_STEPS, on_step=watcher)
    return Execution(log, predicted, plan.plan, running.rules)
