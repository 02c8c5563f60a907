"""`sortedf calibrate`: a step-time model from a log."""

from __future__ import annotations

import json

import pytest

from online.log_file import read_log
from tests.refusals import refused

ROWS = "arrival_s,prefill_tokens,decode_tokens\n0,5,3\n1,6,2\n1,1,1\n3,2,4\n"


@pytest.fixture
def simulate(cli, tmp_path):
    """Simulate a trace with a budget of 10 and other arguments."""
    trace = tmp_path / "trace.csv"
    trace.write_text(ROWS, encoding="utf-8")
    return lambda *arguments: cli("simulate", trace, "--kv-budget", 10, *arguments)


def test_a_log_is_written_and_calibrated(simulate, cli, tmp_path):
    """From a run's log to a model to a run again."""
    log, model = tmp_path / "log.jsonl", tmp_path / "model.json"
    first = simulate("--step-time", "a100-llama-3-8b", "-o", log, "--json")
    assert first[0] == 0
    assert read_log(log).completed.all()
    code, out, _ = cli("calibrate", log, "-o", model, "--json")
    content = json.loads(out)
    assert code == 0
    assert content["r_squared"] > 0.999
    assert content["path"] == str(model)
    again = simulate("--step-time", model, "--json")
    means = [json.loads(run[1])["rows"][0]["mean_latency"] for run in (first, again)]
    assert means[0] == pytest.approx(means[1], rel=1e-3)
    code, out, _ = cli("calibrate", log)
    assert code == 0
    assert "variance explained" in out


def test_calibrate_mistakes(cli, tmp_path):
    """What is no log of steps."""
    path = tmp_path / "log.jsonl"
    assert "No such file" in refused(cli("calibrate", path))
    path.write_text("{}\n", encoding="utf-8")
    assert "the field 'prefill_tokens' is missing" in refused(cli("calibrate", path))
    path.write_text("", encoding="utf-8")
    assert "has no steps" in refused(cli("calibrate", path))


def test_the_model_does_not_take_the_place_of_the_log(cli, tmp_path):
    """Neither is lost."""
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n", encoding="utf-8")
    assert "it is an input" in refused(cli("calibrate", log, "-o", log))
    assert log.read_text(encoding="utf-8") == "{}\n"
