"""Step times: presets, files and what people write."""

from __future__ import annotations

import json

import pytest

from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.step_time import (
    PRESETS,
    UNIT_STEPS,
    StepTime,
    StepTimeError,
    step_time_of,
    write_step_time,
)
from sortedf.traces import Trace


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_are_plausible(name):
    """A decode step of 30 requests, and 2,000 prompt tokens, in a fraction of 1 s."""
    step_time = step_time_of(name)
    decode = step_time.seconds(0, 30, 30 * 1000)
    assert 0.005 < decode < (0.15 if name.startswith("l4") else 0.06)
    assert 2 * decode < step_time.seconds(2000, 30, 30 * 1000) < 1
    assert not step_time.is_constant


def test_a_larger_model_takes_longer():
    """Seventy billion weights on four GPUs, eight on one."""
    small, large = PRESETS["a100-llama-3-8b"], PRESETS["4xa100-llama-3-70b"]
    assert large.constant_s == pytest.approx(small.constant_s * 70.6 / 8.03 / 4)


def test_a_number_is_seconds():
    """Of every step."""
    assert step_time_of("1") == UNIT_STEPS
    assert step_time_of("0.025") == StepTime(0.025)
    assert step_time_of("0.025").is_constant


def test_files_are_read_back(tmp_path):
    """With what was said beside the model left out."""
    path = tmp_path / "model.json"
    model = StepTime(0.01, 1e-4, 2e-5, 3e-8)
    write_step_time(model, path, r_squared=0.99)
    assert step_time_of(str(path)) == model
    assert json.loads(path.read_text(encoding="utf-8"))["r_squared"] == 0.99


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[1]", 'must be a JSON object with "constant_s"'),
        ("{}", 'must be a JSON object with "constant_s"'),
        ('{"constant_s": "fast"}', 'constant_s is "fast" but must be a number'),
        ('{"constant_s": 0}', "constant_s = 0"),
        ('{"constant_s": 1, "running_s": -1}', "running_s = -1"),
    ],
)
def test_bad_files(tmp_path, content, message):
    """The message names the file and what is allowed."""
    path = tmp_path / "model.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StepTimeError, match=message) as caught:
        step_time_of(str(path))
    assert str(path) in str(caught.value)


def test_cards_differ_as_their_memory_and_arithmetic_do():
    """The same model: each token by operations, each step by bandwidth."""
    a100, h100, h200, l4 = (
        PRESETS[f"{card}-llama-3-8b"] for card in ("a100", "h100", "h200", "l4")
    )
    assert h100.prefill_token_s == h200.prefill_token_s < a100.prefill_token_s
    assert a100.prefill_token_s / h100.prefill_token_s == pytest.approx(989 / 312)
    assert h200.constant_s < h100.constant_s < a100.constant_s < l4.constant_s
    assert l4.constant_s / h200.constant_s == pytest.approx(16)


def test_a_preset_is_said_to_be_computed_and_not_measured(caplog):
    step_time_of("l4-qwen3-8b")
    assert "step time l4-qwen3-8b is computed from data sheets" in caplog.text
    caplog.clear()
    step_time_of("0.02")
    assert not caplog.text


def test_neither_number_nor_file_nor_preset():
    """All presets are listed."""
    with pytest.raises(StepTimeError, match="presets: a100-llama-2-7b, a100"):
        step_time_of("h100")
    with pytest.raises(ValueError, match="constant_s"):
        step_time_of("-1")


@pytest.mark.parametrize("prefill_token_s", [0.0, 1e-4])
@pytest.mark.parametrize("running_s", [0.0, 1e-3])
def test_every_token_is_worth_something(prefill_token_s, running_s):
    """A fit may find that decoding costs nothing, and then quanta never ended."""
    step_time = StepTime(0.01, prefill_token_s, running_s)
    assert step_time.work(1, 0) > 0
    assert step_time.work(0, 1) > 0
    assert step_time.work(3, 2) == pytest.approx(
        3 * step_time.work(1, 0) + 2 * step_time.work(0, 1)
    )
    short = Trace([300, *[5] * 5], [300, *[4] * 5], [0.0, *[0.02] * 5])
    rules = EngineModel.vllm(1000, max_num_seqs=1)
    for name in ("las", "mlfq", "uniboost", "uniboost-base", "distboost"):
        log = simulate(short, name, rules, step_time=step_time)
        assert log.completed.all()
        if name in ("las", "mlfq"):  # what is short does not wait for what is long
            assert log.completion_s[1:].max() < log.completion_s[0]
