"""Runs for tests: drawn at random, or with every token's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from online import step_kernels as k
from online.driver import drive
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf.step_time import StepTime
from tests.online.strategies import Restless, rules_for
from tests.strategies import instances

if TYPE_CHECKING:
    from online.run_log import RunLog
    from online.step_engine import StepRecord
    from sortedf import Instance
    from sortedf.engine_model import EngineModel

STEP_TIMES = (StepTime(), StepTime(0.25), StepTime(0.5, 0.01, 0.02, 0.001))


@st.composite
def restless_runs(draw: st.DrawFn) -> tuple[RunLog, EngineModel, StepTime]:
    """A run under random rules, by a policy that does anything."""
    instance = draw(instances(max_requests=8))
    rules = draw(rules_for(instance))
    step_time = draw(st.sampled_from(STEP_TIMES))
    late = draw(st.sampled_from([0.0, 0.3]))
    policy = Restless(draw(st.integers(0, 2**32)))
    log, _ = tokens_of(instance, rules, policy, step_time, late)
    return log, rules, step_time


def tokens_of(
    instance: Instance,
    rules: EngineModel,
    policy: Restless,
    step_time: StepTime,
    late: float = 0.0,
) -> tuple[RunLog, dict[int, list[float]]]:
    """Run, and watch when each request makes a token that it had not made before.

    Arrivals fall `late` of a step after the step's start.
    """
    table = RequestTable.of_arrays(
        instance.prefill,
        instance.decode,
        (instance.arrival + late * (instance.arrival > 0)) * step_time.constant_s,
    )
    times: dict[int, list[float]] = {i: [] for i in range(instance.num_requests)}

    def watch(record: StepRecord, end_s: float) -> None:
        output_tokens = table.ints[k.OUTPUT_TOKENS, : instance.num_requests]
        for i in np.flatnonzero(output_tokens > [len(seen) for seen in times.values()]):
            times[int(i)].append(end_s)

    engine = StepEngine(table, rules, policy, step_time)
    return drive(engine, step_time=step_time, on_step=watch), times
