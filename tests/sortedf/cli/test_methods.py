"""`sortedf methods`: all of them, wherever they are from."""

from __future__ import annotations

import json

from sortedf import METHODS
from tests.sortedf.cli.program import run_module


def test_methods_are_listed(cli):
    """Every method with what it costs and what it guarantees."""
    _, out, _ = cli("methods", "--json")
    assert {row["method"] for row in json.loads(out)["rows"]} == set(METHODS)
    _, out, _ = cli("methods")
    assert "max(c, 1 + 2 c / 3)" in out


def test_methods_of_other_packages_are_listed():
    """In a fresh process, in which none was asked for before."""
    done = run_module("methods", "--json")
    names = {row["method"] for row in json.loads(done.stdout)["rows"]}
    assert {"svf", "auto", "sorted-lp", "milp", "branching"} <= names
