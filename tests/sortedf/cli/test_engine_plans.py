"""The commands where prompts are cut, or steps differ: plans for engines."""

from __future__ import annotations

import json

import pytest

from tests.refusals import refused

VLLM = ("--kv-budget", 400, "--engine-preset", "vllm", "--block-size", 16)
CHUNKS = (*VLLM, "--max-num-seqs", 8, "--max-batched-tokens", 16)
SECONDS = (*CHUNKS, "--step-time", "a100-llama-3-8b")


@pytest.mark.parametrize(("engine", "unit"), [(CHUNKS, "steps"), (SECONDS, "seconds")])
def test_solve_writes_what_check_accepts(cli, crowd, tmp_path, engine, unit):
    """A plan in chunks with a gap, in the unit that the step time says."""
    path = tmp_path / "plan.json"
    code, out, _ = cli("solve", crowd, *engine, "-o", path, "--json")
    solved = json.loads(out)
    assert code == 0
    assert solved["unit"] == unit
    assert solved["n"] == 60
    assert 0 < solved["gap"] < 1
    assert solved["lower_bound"] * (1 + solved["gap"]) == pytest.approx(
        solved["total_latency"]
    )
    assert solved["mean_latency"] == pytest.approx(solved["total_latency"] / 60)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["engine"]["max_batched_tokens"] == 16
    assert sorted(written["position"]) == list(range(60))
    code, out, _ = cli("check", crowd, path, *engine, "--json")
    checked = json.loads(out)
    assert code == 0
    assert checked["feasible"]
    assert checked["total_latency"] == pytest.approx(solved["total_latency"])
    assert "feasible" in cli("check", crowd, path, *engine)[1]


def test_a_changed_plan_fails(cli, crowd, tmp_path):
    """Everything in the first step: exit code 1, and what has no room."""
    path = tmp_path / "plan.json"
    cli("solve", crowd, *SECONDS, "--method", "svf", "-o", path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "start": [0] * 60}), encoding="utf-8")
    code, out, _ = cli("check", crowd, path, *SECONDS, "--json")
    assert code == 1
    assert "cannot be admitted" in json.loads(out)["violations"][0]["message"]
    few = {**content, "start": content["start"][:-1]}
    path.write_text(json.dumps(few), encoding="utf-8")
    assert "59 starts" in refused(cli("check", crowd, path, *SECONDS))
    path.write_text(json.dumps({**content, "start": [None] * 60}), encoding="utf-8")
    assert "row 2" in refused(cli("check", crowd, path, *SECONDS))
    path.write_text(json.dumps({"start": [0] * 60}), encoding="utf-8")
    assert "no plan for an engine" in refused(cli("check", crowd, path, *SECONDS))


def test_a_plan_for_another_engine_is_said(cli, crowd, tmp_path):
    """It is checked for the engine that the options name."""
    path = tmp_path / "plan.json"
    cli("solve", crowd, *SECONDS, "--method", "svf", "-o", path)
    code, _, err = cli("check", crowd, path, *SECONDS, "--eviction", "restart")
    assert code == 0
    assert "made for another engine" in err


def test_bound_and_its_certificate(cli, crowd, tmp_path):
    """The prices can be evaluated again; a false claim fails."""
    path = tmp_path / "proof.json"
    code, out, _ = cli("bound", crowd, *SECONDS, "--certificate", path, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["unit"] == "seconds"
    assert found["method"] == "seconds"
    assert "lower bound, seconds" in cli("bound", crowd, *SECONDS)[1]
    check = ("check", crowd, *SECONDS, "--certificate", path)
    assert json.loads(cli(*check, "--json")[1])["certificate_valid"]
    claim = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**claim, "bound": claim["bound"] + 1}))
    code, out, _ = cli(*check)
    assert code == 1
    assert "CLAIMS TOO MUCH" in out
    path.write_text(json.dumps({**claim, "price": "none"}))
    assert "'price' is missing" in refused(cli(*check))
    path.write_text("{}")
    assert "no certificate in seconds" in refused(cli(*check))


def test_compare_ranks_by_seconds(cli, crowd):
    """A row for each method, best first in the table, against one bound."""
    arguments = (*SECONDS, "--methods", "fcfs,svf,least-work,auto")
    content = json.loads(cli("compare", crowd, *arguments, "--json")[1])
    rows = {row["method"]: row for row in content["rows"]}
    assert list(rows) == ["fcfs", "svf", "least-work", "auto"]
    assert content["unit"] == "seconds"
    best = min(row["mean_latency"] for row in rows.values())
    assert rows["auto"]["mean_latency"] == best
    assert rows["fcfs"]["speedup_vs_fcfs"] == 1
    out = cli("compare", crowd, *arguments)[1]
    assert "no schedule has a mean latency below" in out
    assert out.index("  auto ") < out.index("  fcfs ")


@pytest.mark.parametrize(
    ("command", "option", "message"),
    [
        ("solve", ("--objective", "makespan"), "--objective is not for plans"),
        ("solve", ("--max-latency", 5), "--max-latency is not for plans"),
        ("compare", ("--jobs", 2), "--jobs is not for plans"),
        ("solve", ("--bound", "dual"), "choose one of: auto, seconds, none"),
        ("solve", ("--method", "branching"), "unknown method 'branching' for an"),
        ("solve", ("--long-prefill-token-threshold", 4), "must be 0 where"),
        ("solve", ("--whole-prefill",), "--drop-oversize leaves them out"),
    ],
)
def test_what_is_not_for_engines_is_refused(cli, crowd, command, option, message):
    """One line, exit code 2."""
    assert message in refused(cli(command, crowd, *SECONDS, *option))


def test_rows_that_can_never_run_are_left_out(cli, crowd, tmp_path):
    """Their positions are null, and check knows them."""
    path = tmp_path / "plan.json"
    engine = ("--kv-budget", 100, *SECONDS[2:], "--drop-oversize")
    solved = json.loads(cli("solve", crowd, *engine, "-o", path, "--json")[1])
    assert solved["dropped"]
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["start"].count(None) == len(solved["dropped"])
    assert cli("check", crowd, path, *engine)[0] == 0


def test_run_follows_the_file(cli, crowd, tmp_path):
    """The step engine admits every request in its step."""
    path = tmp_path / "plan.json"
    engine = (*CHUNKS, "--backlog")
    cli("solve", crowd, *engine, "-o", path)
    code, out, _ = cli("run", crowd, *engine, "--plan", path, "--json")
    assert code == 0
    assert json.loads(out)["steps_matching"] == 60
    narrow = ("--kv-budget", 400, "--block-size", 16, "--max-batched-tokens", 8)
    narrow += ("--max-num-seqs", 8)
    assert "not for this engine" in refused(cli("run", crowd, *narrow, "--plan", path))
    other = cli("run", crowd, *engine, "--plan", path, "--mode", "list")
    assert "--plan is for --mode plan" in refused(other)


def test_prefix_caching_is_left_out_and_said(cli, crowd):
    """The presets of vLLM have it on; what prompts share is not in a trace."""
    serve = ("--kv-budget", 400, "--engine-preset", "vllm-serve", "--method", "svf")
    code, out, err = cli("solve", crowd, *serve, "--json")
    assert code == 0
    assert json.loads(out)["unit"] == "steps"
    assert "prefix caching is left out of plans" in err
