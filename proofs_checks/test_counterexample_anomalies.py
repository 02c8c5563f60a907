"""Refuted: "with more memory, fewer requests or shorter answers a rule does better".

As for Graham's list scheduling, each list rule has instances on which something that
looks like a relief makes its TEL larger (that of all requests that are left, so that
with one request fewer the others wait longer than all did before). The counterexamples
in `found/anomalies.json` are the first that exhaustive search met in growing grids, or
the smallest of a seeded random search where the grids have none.

What is not there was not found among all instances of the grids and 400,000 random
ones of up to 8 requests, and is neither proved nor refuted: `OPEN` below. None is
possible for the optimum (`test_claim_optimum_is_monotone.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

from proofs_checks import tiny
from proofs_checks.families import method_tel
from proofs_checks.search import KINDS, as_instance, changed, load

ROWS = load("anomalies")["rows"]

OPEN: set[tuple[str, str]] = set()
"""Pairs of rule and kind without a counterexample."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['rule']}-{row['kind']}")
def test_the_relief_makes_it_worse(row: dict[str, Any]) -> None:
    """TEL before and after are as noted, by the package's own method."""
    instance = as_instance(row)
    relieved = changed(instance, row["kind"], row["request"])
    assert method_tel(instance, row["rule"]) == row["before"]
    assert method_tel(relieved, row["rule"]) == row["after"] > row["before"]


def test_what_is_open_is_listed() -> None:
    """Every rule and kind has a counterexample or is listed as open."""
    found = {(row["rule"], row["kind"]) for row in ROWS}
    assert found | OPEN == {(rule, kind) for rule in tiny.RULES for kind in KINDS}
    assert not found & OPEN


@pytest.mark.parametrize("rule", tiny.RULES)
def test_small_grids_have_none_that_are_open(rule: str) -> None:
    """Exhaustive up to three requests with lengths up to 3."""
    for kind, anomaly in tiny.scan_anomalies(rule, 3, 3, 3).items():
        assert anomaly is None or (rule, kind) not in OPEN
