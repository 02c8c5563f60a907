"""Calibration finds the model that a log was made by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from online.calibration import StepSamples, calibrate, read_samples
from online.log_file import LogError, write_log
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.step_time import PRESETS

if TYPE_CHECKING:
    from sortedf.step_time import StepTime


def counts(num_steps: int = 500) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.column_stack(
        [
            rng.integers(0, 3000, num_steps),
            rng.integers(1, 100, num_steps),
            rng.integers(1, 100_000, num_steps),
        ]
    ).astype(float)


def durations(model: StepTime, table: np.ndarray) -> np.ndarray:
    return np.array([model.seconds(*row) for row in table])


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_exact_durations_give_the_model_back(name):
    """Terms that differ by six orders of magnitude."""
    table = counts()
    found = calibrate(StepSamples(durations(PRESETS[name], table), table))
    for term in ("constant_s", "prefill_token_s", "running_s", "kv_token_s"):
        expected = getattr(PRESETS[name], term)
        assert getattr(found.step_time, term) == pytest.approx(expected, rel=1e-6)
    assert found.r_squared == pytest.approx(1)
    assert found.residual_s["max"] < 1e-9


def test_noise_shows_in_the_fit():
    """A tenth of noise: about right, and the residuals say how far off."""
    table = counts()
    model = PRESETS["a100-llama-3-8b"]
    noise = np.random.default_rng(2).normal(1, 0.1, len(table))
    found = calibrate(StepSamples(durations(model, table) * noise, table))
    prefill_s = found.step_time.prefill_token_s
    assert prefill_s == pytest.approx(model.prefill_token_s, rel=0.1)
    assert 0.9 < found.r_squared < 1
    quantiles = list(found.residual_s.values())
    assert quantiles == sorted(quantiles)
    assert quantiles[0] > 0


def test_no_term_is_negative():
    """More KV makes no engine faster, whatever chance says."""
    table = counts()
    seen = 0.05 - 1e-7 * table[:, 2]
    found = calibrate(StepSamples(seen, table))
    assert found.step_time.kv_token_s == 0
    assert found.step_time.constant_s > 0


def test_a_runs_log_is_read_as_it_is(tmp_path):
    """Its clock where nothing was measured, what was measured otherwise."""
    model = PRESETS["a100-llama-3-8b"]
    log = simulate(
        generate("chat", 40, seed=1), "fcfs", EngineModel.vllm(4096), step_time=model
    )
    path = tmp_path / "log.jsonl"
    write_log(log, path)
    found = calibrate(read_samples(path))
    assert found.num_steps == log.num_steps
    assert found.step_time.constant_s == pytest.approx(model.constant_s, rel=1e-6)
    write_log(log, path, duration_s=np.full(log.num_steps, 0.5))
    assert calibrate(read_samples(path)).step_time.constant_s == pytest.approx(0.5)


STEP = {"prefill_tokens": 1, "num_decoding": 2, "kv_tokens": 3, "duration_s": 0.5}


def test_lists_are_read_too(tmp_path):
    """One object with a list for each column."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps({name: [value] * 5 for name, value in STEP.items()}))
    samples = read_samples(path)
    assert samples.duration_s.tolist() == [0.5] * 5
    assert samples.counts[4].tolist() == [1, 2, 3]
    path.write_text(json.dumps({name: [1] * len(name) for name in STEP}))
    with pytest.raises(LogError, match="unequal length"):
        read_samples(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no steps"),
        ([{**STEP, "kv_tokens": "many"}], 'line 1: kv_tokens is "many"'),
        ([STEP, {**STEP, "duration_s": None}], "line 2: duration_s is null"),
        ([{"kind": "request"}], "has no steps"),
    ],
)
def test_bad_logs(tmp_path, rows, message):
    """File, line and field."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(LogError, match=message):
        read_samples(path)


def test_too_few_steps_and_no_duration():
    """Four terms need four steps, and each takes time."""
    with pytest.raises(ValueError, match="3 steps are too few"):
        calibrate(StepSamples(np.ones(3), counts(3)))
    with pytest.raises(ValueError, match="step 3 took 0 s"):
        calibrate(StepSamples(np.array([1.0, 1, 0, 1, 1]), counts(5)))
