"""`sortedf bound`: values, targets and certificates."""

from __future__ import annotations

import json

import pytest

from sortedf import read, solve
from sortedf.bounds.table import certified_bounds
from tests.refusals import refused


def test_bound_json(cli, trace):
    """The bound with its method."""
    code, out, _ = cli("bound", trace, "--kv-budget", 10, "--method", "fluid", "--json")
    content = json.loads(out)
    assert code == 0
    assert content["lower_bound"] == 7
    assert content["method"] == "fluid"
    assert "runtime_s" in content
    assert "7 steps" in cli("bound", trace, "--kv-budget", 10, "--method", "fluid")[1]


def test_bound_ends_where_the_gap_is_small_enough(cli, tmp_path):
    """The target is a gap of the best list; without one it climbs on."""
    path = tmp_path / "mix.csv"
    assert cli("generate", "mix", "--n", 120, "--seed", 1, "-o", path)[0] == 0
    arguments = ("bound", path, "--kv-budget", 16492, "--method", "dual", "--json")
    values = []
    for gap in ((), ("--target-gap", 0.06), ("--target-gap", 9)):
        code, out, _ = cli(*arguments, *gap)
        assert code == 0
        values.append(json.loads(out)["lower_bound"])
    instance = read(path, kv_budget=16492)
    listed = solve(instance, "best-list", bound="none").tel
    assert listed / 10 <= values[2] < values[1] < values[0]
    assert listed <= 1.06 * values[1]
    assert "must be a finite" in refused(cli(*arguments, "--target-gap", "inf"))


@pytest.mark.parametrize("method", certified_bounds())
def test_every_bound_writes_a_certificate_that_holds(cli, trace, tmp_path, method):
    """Whichever of them wins under auto."""
    path = tmp_path / "proof.json"
    arguments = ("--kv-budget", 10, "--json", "--certificate", path)
    code, out, _ = cli("bound", trace, "--method", method, *arguments)
    assert code == 0
    code, checked, _ = cli("check", trace, *arguments)
    assert code == 0
    assert json.loads(checked)["lower_bound"] == json.loads(out)["lower_bound"]
