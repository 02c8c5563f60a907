"""Runs of a policy on the step engine that look at every step, and what they assert."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from online import step_kernels as k
from online.driver import drive
from online.policy import POLICIES, make_policy
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf.groups import SELECTORS
from sortedf.step_time import UNIT_STEPS, StepTime
from tests.online.strategies import rules_for
from tests.strategies import instances

if TYPE_CHECKING:
    from online.run_log import RunLog
    from online.state import Decision, Policy, State
    from online.step_engine import StepRecord
    from sortedf import Instance
    from sortedf.engine_model import EngineModel

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "distboost": [{"gamma": 0.1}],
    "fcfs": [{"admission": "look-ahead", "backfill": 2}],
    "hrrn": [{"service": "prompt"}, {"admission": "look-ahead"}],
    "las": [{"hysteresis": 2.0}],
    "longest-prefix": [{"most_passed": 2, "window": 3}],
    "mlfq": [{"quantum": 2}],
    "pars": [{"starvation_s": 5.0}],
    "sorted-f-amin": [{"factor": 2.0}, {"every": 0, "groups": "exact"}],
    "sorted-f-online": [
        {"keep_group": True},
        {"every": 3},
        {"every": 0, "backfill": 2},
        *({"groups": name} for name in sorted(SELECTORS)),
    ],
    "srpt": [{"limit": 0.5, "headroom": 2}],
    "svf-1bit": [{"threshold": 40.0}],
    "svf-aged": [{"patience": 1.0}],
    "svf-blind": [{"margin": 0.0, "share": 2.0}, {"gamma": 0.05}],
    "svf-boost": [{"share": 3.0, "backfill": 2}, {"gamma": 0.05}],
    "uniboost": [{"gamma": 0.05, "guard_tokens": 2}, {"gamma": 1.0}],
    "uniboost-base": [{"gamma": 0.05}, {"gamma": 0.05, "hysteresis": 3.0}],
}
"""Options to try beside the defaults."""

POLICY_OPTIONS = [
    (name, options)
    for name, kind in sorted(POLICIES.items())
    if not kind.needs_plan  # tested with the schedules that they follow
    for options in [{}, *OPTIONS.get(name, [])]
]
"""Every policy that is registered, as it is and with the options above."""


@dataclass
class Watched:
    """Passes decisions on, and keeps them with what they were taken on."""

    policy: Policy
    decisions: list[Decision] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def decide(self, state: State) -> Decision:
        self.states.append(state)
        self.decisions.append(self.policy.decide(state))
        return self.decisions[-1]


@dataclass
class Run:
    log: RunLog
    records: list[StepRecord]
    watched: Watched

    @property
    def evictions(self) -> int:
        return int(self.log.steps.evictions.sum())

    @property
    def preemptions(self) -> int:
        return int(self.log.steps.preemptions.sum())

    def fates(self) -> list[tuple[int, int, int]]:
        """Start, completion and preemptions of each request."""
        log = self.log
        columns = (log.start_step, log.completion_step, log.preemptions)
        return list(zip(*(c.tolist() for c in columns), strict=True))


def run(
    instance: Instance,
    rules: EngineModel,
    policy: str | Policy,
    *,
    predicted: list[int] | None = None,
    score: list[float] | None = None,
    step_time: StepTime = UNIT_STEPS,
    max_steps: int = 20_000,
    **options: Any,
) -> Run:
    """Run a policy to the end, and check in every step that no rule is broken."""
    table = RequestTable.of_instance(instance, predicted=predicted, score=score)
    chosen = make_policy(policy, **options) if isinstance(policy, str) else policy
    watched = Watched(chosen)
    engine = StepEngine(table, rules, watched, step_time)
    records: list[StepRecord] = []

    def look(record: StepRecord, end_s: float) -> None:
        records.append(record)
        assert len(records) < max_steps, "the run does not come to an end"
        assert 0 <= record.used_blocks <= rules.num_blocks
        if record.evicted:
            assert record.started, "an eviction that lets no request start"
            assert not set(record.evicted) & set(record.started)

    log = drive(engine, step_time=step_time, on_step=look)
    assert log.completed.all()
    assert not log.refused
    made_all = table.ints[k.OUTPUT_TOKENS, : instance.num_requests]
    assert made_all.tolist() == instance.decode.tolist()
    return Run(log, records, watched)


@st.composite
def cases(draw: st.DrawFn, **kwargs: Any) -> tuple[Instance, EngineModel]:
    """Draw an instance with engine rules under which every request can run."""
    instance = draw(instances(**kwargs))
    return instance, draw(rules_for(instance))
