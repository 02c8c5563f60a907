"""`sortedf check`: schedules and certificates, right and wrong."""

from __future__ import annotations

import json

import pytest

from sortedf import Instance, solve
from tests.refusals import refused


def test_solve_writes_what_check_accepts(cli, trace, tmp_path):
    """The schedule file is in row order and replays."""
    path = tmp_path / "schedule.json"
    cli("solve", trace, "--kv-budget", 10, "--method", "svf", "-o", path)
    content = json.loads(path.read_text(encoding="utf-8"))
    expected = solve(Instance([5, 6, 1], [3, 2, 1], 10), "svf").schedule.start
    assert content["start"] == expected.tolist()
    assert content["kv_budget"] == 10
    assert content["method"] == "svf"
    code, out, _ = cli("check", trace, path, "--kv-budget", 10, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["feasible"]
    assert report["violations"] == []
    assert {"total_latency", "peak_kv"} <= set(report)


def test_check_fails_for_a_broken_schedule(cli, trace, tmp_path):
    """Exit code 1, and what is broken."""
    path = tmp_path / "schedule.json"
    path.write_text("[0, 0, 0]", encoding="utf-8")
    code, out, _ = cli("check", trace, path, "--kv-budget", 10, "--json")
    report = json.loads(out)
    assert code == 1
    assert not report["feasible"]
    assert report["violations"][0]["message"].startswith("step 1: 15 KV tokens held")
    code, out, _ = cli("check", trace, path, "--kv-budget", 10)
    assert code == 1
    assert "step 1: 15 KV tokens held, kv_budget is 10" in out


def test_certificate_is_written_and_checked(cli, trace, tmp_path):
    """The prices can be evaluated again; a false claim fails."""
    path = tmp_path / "proof.json"
    arguments = ("--kv-budget", 10, "--json", "--certificate", path)
    code, out, _ = cli("bound", trace, "--method", "dual", *arguments)
    assert code == 0
    bound = json.loads(out)["lower_bound"]
    code, out, _ = cli("check", trace, *arguments)
    assert code == 0
    assert json.loads(out)["lower_bound"] == bound
    assert json.loads(out)["certificate_valid"]
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "lower_bound": bound + 1}), encoding="utf-8")
    code, out, _ = cli("check", trace, *arguments)
    assert code == 1
    assert not json.loads(out)["certificate_valid"]
    assert json.loads(out)["lower_bound"] == bound
    code, out, _ = cli("check", trace, "--kv-budget", 10, "--certificate", path)
    assert code == 1
    assert "CLAIMS TOO MUCH" in out


def test_certificate_of_another_instance_is_refused(cli, trace, tmp_path):
    """The hash is over lengths, arrivals and budget."""
    path = tmp_path / "proof.json"
    arguments = ("--method", "dual", "--certificate", path)
    assert cli("bound", trace, "--kv-budget", 10, *arguments)[0] == 0
    result = cli("check", trace, "--kv-budget", 11, "--certificate", path)
    assert "another instance" in refused(result)
    assert "give a schedule, or a certificate" in refused(
        cli("check", trace, "--kv-budget", 11)
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[0, 0]", "2 start steps but"),
        ("{}", 'a list "start"'),
        ("[0, 0, -1]", "start of row 3 is -1"),
        ("[0, 0, true]", "start of row 3 is true"),
        ("[0, 0, 1.5]", "start of row 3 is 1.5"),
        ("[0, 0, null]", "row 4 of"),
        ("nonsense", "is no JSON"),
    ],
)
def test_bad_schedule_files(cli, trace, tmp_path, content, message):
    """Another length, another type, another file."""
    path = tmp_path / "schedule.json"
    path.write_text(content, encoding="utf-8")
    assert message in refused(cli("check", trace, path, "--kv-budget", 10))
