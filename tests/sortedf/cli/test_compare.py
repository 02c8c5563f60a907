"""`sortedf compare`: a row for each method."""

from __future__ import annotations

import json

from sortedf import METHODS


def test_compare_json(cli, trace):
    """A row for each method, with speed-up and gap."""
    code, out, err = cli("compare", trace, "--kv-budget", 10, "--json")
    content = json.loads(out)
    assert code == 0
    methods = {name for name, method in METHODS.items() if method.same_as is None}
    assert methods == set(METHODS) - {"exact"}
    methods -= {name for name, method in METHODS.items() if method.only_shared}
    methods -= {name for name, method in METHODS.items() if method.for_step_caps}
    assert {row["method"] for row in content["rows"]} == methods
    # A slow run, such as one that compiles, says how far it is; nothing else is said.
    notes = [line for line in err.splitlines() if "methods: " not in line]
    assert [line.startswith("sortedf: read 3 requests") for line in notes] == [True]
    for row in content["rows"]:
        wanted = {"method", "mean_latency", "speedup_vs_fcfs", "gap", "runtime_s"}
        assert wanted <= set(row)
    fcfs = next(row for row in content["rows"] if row["method"] == "fcfs")
    assert fcfs["speedup_vs_fcfs"] == 1


def test_compare_chosen_methods(cli, trace):
    """Without fcfs among them the speed-up is still against it."""
    arguments = ("--kv-budget", 10, "--methods", "svf, auto,svf", "--json")
    _, out, _ = cli("compare", trace, *arguments)
    rows = json.loads(out)["rows"]
    assert [row["method"] for row in rows] == ["svf", "auto"]
    assert rows[0]["speedup_vs_fcfs"] >= 1


def test_compare_says_what_it_leaves_out(cli, tmp_path):
    """A method that is not meant for the size is named on standard error."""
    path = tmp_path / "trace.csv"
    path.write_text("prefill_tokens,decode_tokens\n" + "3,4\n" * 150, encoding="utf-8")
    _, out, err = cli("compare", path, "--kv-budget", 50)
    assert "exact-dp is for up to 100 requests and left out" in err
    assert "exact-dp" not in out


def test_compare_shows_no_window_for_a_search(cli, crowd):
    """A dash, because no list was placed."""
    code, out, _ = cli("compare", crowd, "--kv-budget", 400, "--methods", "improve")
    assert code == 0
    assert out.splitlines()[-2].split()[-3] == "-"
