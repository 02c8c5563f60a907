"""Refuted: "with more memory, fewer requests or shorter answers a rule does better".

As for Graham's list scheduling, each list rule has instances on which relaxing the
instance makes its TEL larger (with one request fewer, the TEL of the others alone is
larger than that of all requests before). All six rules have
all three kinds of anomaly. The counterexamples in `found/anomalies.json` are the first
that exhaustive search met in growing grids of up to five requests, or, where the grids
have none, come from a seeded random search of five to nine; those may not be the
smallest. For two requests, and for three with lengths up to 3, checked here, more
memory or a request fewer never hurt any rule.

None is possible for the optimum (`test_claim_optimum_is_monotone.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

from proofs_checks import tiny
from proofs_checks.families import method_tel
from proofs_checks.search import KINDS, as_instance, changed, load

ROWS = load("anomalies")["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['rule']}-{row['kind']}")
def test_the_relief_makes_it_worse(row: dict[str, Any]) -> None:
    """TEL before and after are as noted, by the package's own method."""
    instance = as_instance(row)
    relieved = changed(instance, row["kind"], row["request"])
    assert method_tel(instance, row["rule"]) == row["before"]
    assert method_tel(relieved, row["rule"]) == row["after"] > row["before"]


def test_every_rule_has_every_kind() -> None:
    """Six rules, three kinds."""
    found = {(row["rule"], row["kind"]) for row in ROWS}
    assert found == {(rule, kind) for rule in tiny.RULES for kind in KINDS}


@pytest.mark.parametrize("rule", tiny.RULES)
def test_three_requests_have_only_one_kind(rule: str) -> None:
    """Exhaustive with lengths up to 3: only shorter answers can hurt."""
    found = tiny.scan_anomalies(rule, 3, 3, 3)
    assert found["memory"] is None
    assert found["fewer"] is None
