"""The scheduler class measures its steps: a real clock, and a step is no second."""

from __future__ import annotations

import numpy as np
import pytest

from online.calibration import calibrate, read_samples
from online.driver import drive
from online.executor.step_meter import (
    StepMeter,
    open_step_log,
    shown_step_time,
)
from online.last_decision import LastDecision
from online.policy import POLICIES, make_policy
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS, StepTime
from tests.online.executor.test_policy_host import Outside

STEP_S = 0.01
"""Seconds of a step in the server."""

TRUE = StepTime(0.008, 2e-5, 1e-4, 3e-8)
BUDGET = 2000
NEVER = 2500


def feed(meter: StepMeter, clock: list[float], counts, took_s: float) -> bool:
    """One step of an engine that is never idle."""
    meter.begin()
    meter.planned(counts)
    clock[0] += took_s
    return meter.done(busy=True)


def drawn_steps(num: int, seed: int = 0) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    prompts = rng.integers(1, 2000, num) * (rng.random(num) < 0.2)
    return list(
        zip(
            prompts.tolist(),
            rng.integers(1, 60, num).tolist(),
            rng.integers(1, 60_000, num).tolist(),
            strict=True,
        )
    )


def measured(disturbance, num: int = 600) -> StepTime:
    """What a meter finds where steps have noise of 5 % and pauses besides."""
    clock, rng = [0.0], np.random.default_rng(1)
    meter = StepMeter(lambda: clock[0], None, 60_000)
    for j, counts in enumerate(drawn_steps(num)):
        took_s = TRUE.seconds(*counts) * rng.normal(1, 0.05)
        feed(meter, clock, counts, took_s + disturbance(j, rng))
    return meter.step_time


@pytest.mark.parametrize(
    "disturbance",
    [
        lambda j, rng: 0.0,
        lambda j, rng: 20.0 if j < 8 else 0.0,  # compiled while it serves
        lambda j, rng: 5.0 * (rng.random() < 0.03),  # pauses, not a step's work
        lambda j, rng: 3.0 if j in (9, 12, 14) else 0.0,
    ],
)
def test_the_model_is_found_whatever_holds_up_some_steps(disturbance):
    found = measured(disturbance)
    for counts in [(0, 30, 20_000), (1000, 30, 20_000), (0, 0, 60_000)]:
        assert found.seconds(*counts) == pytest.approx(TRUE.seconds(*counts), rel=0.15)


def test_steps_that_are_alike_say_nothing_of_others():
    """Eight requests decode in every step: their time is a constant, not per token."""
    clock, rng = [0.0], np.random.default_rng(1)
    meter = StepMeter(lambda: clock[0], None, 1_000_000)
    for j in range(300):
        feed(meter, clock, (0, 8, 500 + j % 3), STEP_S * rng.normal(1, 0.05))
    assert meter.step_time.seconds(0, 8, 500) == pytest.approx(STEP_S, rel=0.05)
    assert meter.step_time.seconds(0, 0, 1_000_000) < 10 * STEP_S
    assert meter.step_time.seconds(0, 0, 0) > STEP_S / 2


def test_idle_time_is_no_step():
    clock = [0.0]
    meter = StepMeter(lambda: clock[0], None, 1000)
    for _ in range(100):
        clock[0] += 60.0  # idle
        meter.begin()
        meter.planned((0, 1, 10))
        clock[0] += STEP_S
        meter.done(busy=False)
    assert meter.step_time.seconds(0, 1, 10) == pytest.approx(STEP_S)


def test_two_steps_under_way_are_not_counted_twice():
    """Async scheduling plans a step before the one before it has ended."""
    clock = [0.0]
    meter = StepMeter(lambda: clock[0], None, 1000)
    meter.begin()
    meter.planned((0, 2, 10))
    for j in range(100):
        meter.begin()
        meter.planned((0, 2, 10) if j % 2 else (100, 2, 10))
        clock[0] += 0.03 if j % 2 else 0.01  # the one planned before
        meter.done(busy=True)
    assert meter.step_time.seconds(0, 2, 10) == pytest.approx(0.01, rel=0.1)
    assert meter.step_time.seconds(100, 2, 10) == pytest.approx(0.03, rel=0.1)


def test_a_model_that_is_near_enough_is_kept():
    """A policy ranks all requests again with another one."""
    clock, rng, changes = [0.0], np.random.default_rng(3), 0
    shown = []
    meter = StepMeter(
        lambda: clock[0], None, 60_000, show=lambda *news: shown.append(news)
    )
    for counts in drawn_steps(3000):
        took_s = TRUE.seconds(*counts) * rng.normal(1, 0.05)
        changes += feed(meter, clock, counts, took_s)
    assert 1 <= changes == len(shown) <= 4
    assert "constant_s 0.0" in shown_step_time(*shown[-1])


def test_a_slower_engine_is_noticed():
    clock = [0.0]
    meter = StepMeter(lambda: clock[0], None, 1000)
    for j in range(4000):
        feed(meter, clock, (0, 4, 100), STEP_S if j < 1000 else 3 * STEP_S)
    assert meter.step_time.seconds(0, 4, 100) == pytest.approx(3 * STEP_S)


def test_a_given_model_stays_and_the_log_is_read_by_calibrate(tmp_path):
    clock, path = [0.0], tmp_path / "steps.jsonl"
    log = open_step_log(str(path))
    meter = StepMeter(lambda: clock[0], TRUE, 60_000, log=log)
    steps = drawn_steps(200)
    for counts in steps:
        assert not feed(meter, clock, counts, TRUE.seconds(*counts))
    assert meter.step_time is TRUE
    log.close()
    assert len(path.read_text().splitlines()) == len(steps)
    found = calibrate(read_samples(path)).step_time
    assert found.prefill_token_s == pytest.approx(TRUE.prefill_token_s, rel=1e-3)
    assert found.constant_s == pytest.approx(TRUE.constant_s, rel=1e-3)


def test_a_disk_that_is_full_stops_the_log_and_not_the_server(caplog):
    class Full:
        def write(self, line):
            raise OSError("no space left")

    clock = [0.0]
    meter = StepMeter(lambda: clock[0], None, 1000, log=Full())
    for _ in range(40):
        feed(meter, clock, (0, 4, 100), STEP_S)
    assert caplog.text.count("no space left") == 1
    assert meter.step_time.seconds(0, 4, 100) == pytest.approx(STEP_S)


def test_a_log_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"step_log: .*No such file"):
        open_step_log(str(tmp_path / "no" / "such.jsonl"))


# A policy in a server, with its clock.


class Served(Outside):
    """A policy host beside a step engine whose steps take real seconds."""

    def __init__(self, instance, arrival_s, policy, step_time, *, is_measured):
        self.clock_s = 0.0
        meter = StepMeter(lambda: self.clock_s, None, BUDGET) if is_measured else None
        rules = EngineModel.vllm(BUDGET)
        super().__init__(instance, rules, policy, recording=False, meter=meter)
        self.step_time = step_time
        for table in (self.table, self.host.table):
            table.arrival_s[: len(arrival_s)] = arrival_s

    def step(self, now_s):
        self.clock_s = now_s
        record = super().step(now_s)
        self.clock_s += self.step_time.seconds(
            record.prefill_tokens, record.num_decoding, record.kv_tokens
        )
        self.host.step_done(record.finished, busy=bool(self.running))
        return record


def stream(num_steps: int) -> tuple[Instance, np.ndarray]:
    """One long request among short ones, which alone fill the engine; arrivals."""
    every = 3
    count = num_steps // every
    draw = np.random.default_rng(5)
    prefill = [130, *draw.integers(20, 60, count).tolist()]
    decode = [130, *draw.integers(60, 120, count).tolist()]
    arrival = [300, *(every * np.arange(count)).tolist()]
    return Instance(prefill, decode, BUDGET), np.array(arrival)


class Looked(Exception):
    """The long request has started, or has not for too long."""


def start_of_the_long_one(name, step_time, *, is_measured=None) -> int:
    """Step in which it starts: in a server, or in the simulator."""
    instance, arrival = stream(3000)
    arrival_s, policy = arrival * step_time.constant_s, make_policy(name)
    if is_measured is None:
        rules = EngineModel.vllm(BUDGET)
        table = RequestTable.of_instance(instance)
        table.arrival_s[: len(arrival_s)] = arrival_s
        engine = StepEngine(table, rules, policy, step_time)
    else:
        engine = Served(instance, arrival_s, policy, step_time, is_measured=is_measured)
    begun = iter(range(NEVER))

    def look(record, now_s):
        if 0 in record.started or next(begun) == NEVER - 1:
            raise Looked(record.step)

    with pytest.raises(Looked) as seen:
        drive(engine, step_time=step_time, on_step=look)
    return seen.value.args[0]


@pytest.mark.parametrize("name", ["svf-boost", "svf-aged"])
def test_a_long_request_starts_in_a_server_as_in_the_simulator(name):
    """With steps of 1 s instead of 10 ms its work seemed a hundred times as long."""
    step_time = StepTime(STEP_S)
    simulated = start_of_the_long_one(name, step_time)
    assert start_of_the_long_one(name, step_time, is_measured=False) == NEVER
    served = start_of_the_long_one(name, step_time, is_measured=True)
    assert simulated <= served <= 1.1 * simulated


@pytest.mark.parametrize("name", [n for n in POLICIES if not POLICIES[n].needs_plan])
def test_every_policy_serves_on_when_its_step_times_change(name):
    """Its queue is ranked again, and no decision is refused."""
    draw = np.random.default_rng(2)
    instance = Instance(draw.integers(5, 300, 60), draw.integers(5, 200, 60), BUDGET)
    served = Served(instance, np.zeros(60), make_policy(name), TRUE, is_measured=True)
    log = drive(served, step_time=TRUE)
    assert np.all(log.completed)
    assert served.host.policy is not None
    assert served.host.last.step_time != UNIT_STEPS


@pytest.mark.parametrize("name", ["least-work", "svf-aged", "svf-boost"])
def test_a_queue_with_other_step_times_is_one_made_with_them(name):
    """Prompts weigh little first, and then much."""
    draw = np.random.default_rng(3)
    sizes = draw.integers(5, 300, (2, 40))
    heads = []
    for times in ([UNIT_STEPS, TRUE], [TRUE]):
        table = RequestTable.of_instance(Instance(*sizes, BUDGET))
        last = LastDecision(EngineModel.vllm(BUDGET), times[0])
        last.joined = list(range(40))
        policy, none = make_policy(name), np.zeros(0, dtype=np.int64)
        for step_time in times:
            last.step_time = step_time
            last.ask(policy, 0, 0.0, none, table.view, 0, range(40), None)
        heads.append(policy.queue.head(40))
    assert heads[0] == heads[1]
