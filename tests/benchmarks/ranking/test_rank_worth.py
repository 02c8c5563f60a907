"""What a rank is worth: gains against FCFS, the noise between them, trained scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.ranking.parts.rank_worth_limit import limits, work_s
from benchmarks.ranking.parts.rank_worth_page import chosen, gain, page
from benchmarks.ranking.parts.rank_worth_traces import CHAT_ENGINE, WORKLOADS, lengths
from benchmarks.ranking.parts.rank_worth_trained_page import expected_gain
from benchmarks.ranking.rank_worth_trained import NOISE, SCORES, curves
from sortedf.engine_model import EngineModel
from sortedf.step_time import StepTime
from tests.real_data import FOLDER, needs_data


def noise_row(order, seed, value, **more):
    return {"order": order, "seed": seed, "mean_latency": value, **more}


ROWS = [
    *(noise_row("fcfs", seed, 12.0 * seed) for seed in (1, 2, 3)),
    *(
        noise_row("rank", seed, 12.0 * seed / faster, target=target, limit_s=None)
        for target, faster in ((0.0, 1.0), (0.5, 3.0), (1.0, 4.0))
        for seed in (1, 2, 3)
    ),
]


def test_a_gain_compares_the_same_requests():
    """Draw by draw: of other draws the ratio would be another one."""
    fcfs, rank = chosen(ROWS, order="fcfs"), chosen(ROWS, order="rank", target=0.5)
    assert gain(rank, fcfs, "mean_latency") == pytest.approx(3.0)
    with pytest.raises(KeyError):
        gain(rank, fcfs[:2], "mean_latency")


@pytest.mark.parametrize(("tau", "expected"), [(0.25, 2.0), (0.5, 3.0), (2.0, 4.0)])
def test_noise_between_two_targets(tmp_path, tau, expected):
    """From the rows that the benchmark with noise wrote, after their first line."""
    rows = [page_row(row, None) for row in ROWS]
    lines = [json.dumps(row) + "\n" for row in ({"commit": "x"}, *rows)]
    (tmp_path / NOISE).write_text("".join(lines))
    found = curves(tmp_path / NOISE)
    assert expected_gain(found, tau, "mean_latency", None) == pytest.approx(expected)
    assert expected_gain([], tau, "mean_latency", None) is None
    assert curves(tmp_path / "none.jsonl") == []


def test_the_engine_has_the_memory_that_the_weights_leave():
    """80 GB, nine tenths of it, less 13.48 GB of weights, at half a MiB a token."""
    left = 0.9 * 80e9 - 2 * 6.74e9
    assert CHAT_ENGINE.rules.kv_budget == int(left / 2**19)


@pytest.mark.parametrize("decode", [[5, 5, 5], [1, 2, 4, 9, 30], [100, 1]])
def test_the_limit_is_where_long_bursts_go(decode):
    """One request at a time, so that work is the answer's steps; a long line."""
    rules, copies = EngineModel.vllm(10**6, max_num_seqs=1), 400
    o = np.array(decode * copies)
    work = work_s(np.ones_like(o), o, rules, StepTime())
    assert work.tolist() == o.tolist()
    bound = limits(o, work)
    lines = [np.random.default_rng(0).permutation(o), np.sort(o)]
    ends = [np.cumsum(line) for line in lines]
    mean = ends[0].mean() / ends[1].mean()
    per_token = (ends[0] / lines[0]).mean() / (ends[1] / lines[1]).mean()
    assert bound["mean_latency"] == pytest.approx(mean, rel=0.05)
    assert bound["mean_per_token"] == pytest.approx(per_token, rel=0.1)


@needs_data
@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_workload_is_in_the_data(name):
    prefill, decode = lengths(FOLDER, WORKLOADS[name])
    assert len(prefill) == len(decode) > 100
    assert min(prefill.min(), decode.min()) >= 1


def page_row(row, load):
    """Fill up a row with what pages ask for."""
    value = row["mean_latency"]
    return {
        "part": "noise", "workload": "W", "load": load, "n": 9, "engine": "e",
        "kv_budget": 5, "mean_inverse": 0.1, "spread": 0.5, "mean_ttft": 3.0,
        "mean_per_token": value / 2, "p90_per_token": value, **row,
    }  # fmt: skip


def test_the_page_has_every_gain():
    """Halfway in saving, not in times."""
    rows = [page_row(row, load) for row in ROWS for load in (None, 1.2)]
    svf = [row | {"order": "svf"} for row in rows if row["order"] == "fcfs"]
    text = page(rows + svf)
    assert "| 0.5 | 3.00 | 3.00 | 3.00 |" in text
    assert "At tau_b 0.5: 89% of the oracle's saving in mean per token" in text


@needs_data
def test_a_trained_ranker_against_its_yardsticks(tmp_path):
    """Scores that are the lengths do as well as the oracle; others are passed over."""
    true = np.random.default_rng(0).integers(1, 300, 50).tolist()
    known = {"data": "alpaca_eval", "model": "gpt-4-turbo-2024-04-09", "seed": 1}
    rows = [
        {**known, "method": "perfect", "lengths": true, "scores": true},
        {**known, "method": "upside down", "lengths": true,
         "scores": [-o for o in true], "prompt_tokens": [9] * 50},
        {**known, "model": "another", "method": "x", "lengths": true, "scores": true},
    ]  # fmt: skip
    (tmp_path / SCORES).write_text("".join(json.dumps(row) + "\n" for row in rows))
    folders = ["--data", str(FOLDER), "--results", str(tmp_path)]
    assert main(["rank_worth_trained", "--quick", *folders]) == 0
    _, *lines = (tmp_path / "rank_worth_trained.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    orders = {row["order"] for row in found}
    assert orders == {"fcfs", "oracle", "perfect", "upside down"}
    (perfect,) = [r for r in chosen(found, order="perfect") if r["limit_s"] is None]
    (worst,) = [r for r in chosen(found, order="upside down") if r["limit_s"] is None]
    oracle = chosen(found, order="oracle", draw=perfect["draw"])[0]
    assert perfect["mean_latency"] == oracle["mean_latency"]
    assert (perfect["tau_b"], worst["tau_b"]) == pytest.approx((1.0, -1.0))
    assert worst["mean_per_token"] > perfect["mean_per_token"]
    text = (tmp_path / "rank_worth_trained.md").read_text()
    assert text.index("| perfect |") < text.index("| upside down |")


def test_without_scores_it_says_what_to_run(tmp_path, capsys):
    assert main(["rank_worth_trained", "--results", str(tmp_path)]) == 1
    assert "python -m benchmarks ranking" in capsys.readouterr().err
