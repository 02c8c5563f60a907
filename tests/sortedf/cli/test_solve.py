"""`sortedf solve`: JSON keys, the table for people, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sortedf
from sortedf import Instance, check, solve
from sortedf.improve import improving
from tests.refusals import refused


def test_solve_json(cli, trace):
    """One JSON object with the promised keys, and nothing else."""
    code, out, _ = cli("solve", trace, "--kv-budget", 10, "--json")
    content = json.loads(out)
    assert code == 0
    assert content["total_latency"] == 8
    assert content["lower_bound"] == 8
    assert content["status"] == "optimal"
    assert content["dropped"] == []
    wanted = "n kv_budget method total_latency mean_latency makespan peak_kv"
    wanted += " lower_bound gap status runtime_s"
    assert set(wanted.split()) <= set(content)


def test_solve_for_people(cli, trace):
    """A table with latency, bound and gap."""
    code, out, _ = cli("solve", trace, "--kv-budget", 10, "--bound", "fluid")
    assert code == 0
    for word in ("3 requests", "mean latency", "2.7 steps", "gap", "14.29%"):
        assert word in out


def test_solution_is_what_the_library_says(cli, trace):
    """Command line and library agree."""
    _, out, _ = cli("solve", trace, "--kv-budget", 10, "--json", "--method", "lpt")
    instance = Instance([5, 6, 1], [3, 2, 1], 10)
    result = solve(instance, "lpt")
    assert json.loads(out)["total_latency"] == result.tel
    assert check(instance, result.schedule).feasible


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--method", "magic"],
            "unknown method 'magic'; choose one of: alpha-points, area, auto",
        ),
        (["--bound", "magic"], "unknown bound 'magic'; choose one of: "),
        (["--seed", "-1"], "--seed"),
        (["--backfill", "x"], "--backfill"),
        (["--time-limit", "-1"], "--time-limit"),
        (["--step-time", "0"], "step_time_s = 0.0 but must be"),
        (["--block-size", "0"], "--block-size"),
        (["--plot", "out.xyz"], "must end in .png, .svg or .pdf"),
        (["--plot", "no/such/folder/out.png"], "no/such/folder"),
        (["-o", "no/such/folder/out.json"], "no/such/folder"),
        (["--colour"], "--colour"),
        (["--tokenizer", "no/such"], "no/such"),
        (["--objective", "p50"], "choose one of tel, weighted-tel, makespan"),
        (["--objective", "weighted-tel"], "--weights FILE go together"),
        (["--weights", "w.txt"], "--weights FILE go together"),
        (["--max-latency", "9", "--p99-latency", "9"], "give one of them"),
        (["--max-latency", "0"], "--max-latency 0: must be from 1"),
        (["--p99-latency", "0"], "--p99-latency 0: must be from 1"),
        (["--p99-latency", "x"], "--p99-latency"),
        (["--objective", "makespan", "--method", "svf"], "'svf' minimises TEL alone"),
    ],
)
def test_bad_options(cli, trace, arguments, message):
    """Each is one line that names the option."""
    assert message in refused(cli("solve", trace, "--kv-budget", 10, *arguments))


def test_solve_searches_from_a_given_schedule(cli, crowd, tmp_path):
    """It is never worse; what is no schedule of the trace is refused."""
    path = tmp_path / "first.json"
    budget = ("--kv-budget", 400, "--json")
    _, out, _ = cli("solve", crowd, *budget, "--method", "svf", "-o", path)
    first = json.loads(out)["total_latency"]
    search = ("--rounds", 1, "--jobs", 2, "--start", path)
    code, out, _ = cli("solve", crowd, *budget, *search)
    found = json.loads(out)
    assert code == 0
    assert found["total_latency"] < first
    assert found["found_by"] == "improve"
    assert found["backfill"] is None
    path.write_text(json.dumps([0] * 60), encoding="utf-8")
    assert "no feasible schedule" in refused(cli("solve", crowd, *budget, *search))


def test_solve_stops_at_the_target_gap(cli, crowd):
    """A gap that the lists have already needs no search."""
    _, out, _ = cli("solve", crowd, "--kv-budget", 400, "--target-gap", 9)
    assert "found by" in out
    assert "backfill" in out


def test_ctrl_c_during_a_search_gives_what_there_is(cli, trace, monkeypatch):
    """The best schedule so far is printed, and that is no failure."""

    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(improving, "make_guide", pressed)
    arguments = ("--kv-budget", 10, "--bound", "fluid", "--json")
    code, out, _ = cli("solve", trace, *arguments)
    assert (code, json.loads(out)["status"]) == (0, "time_limit")
    code, out, err = cli("compare", trace, *arguments, "--methods", "svf,auto,fcfs")
    rows = [row["method"] for row in json.loads(out)["rows"]]
    assert (code, rows) == (0, ["svf", "auto"])
    assert "interrupted; 2 of 3 methods are shown" in err


def test_unwritable_output_is_refused_before_the_work(cli, trace, monkeypatch):
    """A path that cannot be written is refused before the search."""

    def never(*arguments, **options):
        raise AssertionError("solved although the output folder is missing")

    monkeypatch.setattr(sortedf, "solve", never)
    message = refused(cli("solve", trace, "--kv-budget", 10, "-o", "no/such/s.json"))
    assert "no/such does not exist" in message
    assert sorted(trace.parent.iterdir()) == [trace]


def test_an_output_that_fails_leaves_what_was_there(cli, trace, tmp_path, monkeypatch):
    """An old schedule survives a run that breaks while it writes."""
    path = tmp_path / "schedule.json"
    path.write_text("old", encoding="utf-8")

    def broken(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", broken)
    arguments = ("--kv-budget", 10, "-o", path)
    assert "No space left" in refused(cli("solve", trace, *arguments))
    assert path.read_text(encoding="utf-8") == "old"
    assert sorted(tmp_path.iterdir()) == [path, trace]


def test_shared_prefixes_are_planned_bounded_and_checked(cli, tmp_path):
    """From a generated trace to a schedule and a certificate that are verified."""
    trace, plan, proof = (tmp_path / name for name in ("t.csv", "p.json", "c.json"))
    cli("generate", "samples", "--n", 24, "--seed", 1, "-o", trace)
    engine = ("--kv-budget", 40000, "--prefix-caching")
    code, out, _ = cli("solve", trace, *engine, "-o", plan, "--json")
    assert code == 0
    solved = json.loads(out)
    code, out, _ = cli("check", trace, plan, *engine, "--json")
    assert code == 0
    assert json.loads(out)["total_latency"] == solved["total_latency"]
    assert json.loads(out)["peak_kv"] == solved["peak_kv"]
    code, out, _ = cli("bound", trace, *engine, "--certificate", proof, "--json")
    assert code == 0
    assert json.loads(out)["lower_bound"] == solved["lower_bound"]
    code, out, _ = cli("check", trace, "--certificate", proof, *engine, "--json")
    assert code == 0
    code, _, err = cli("check", trace, "--certificate", proof, "--kv-budget", 40000)
    assert code == 2
    assert "for another instance" in err
