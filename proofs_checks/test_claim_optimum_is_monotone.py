"""Claim: the optimum has no anomalies.

More memory, one request fewer or a shorter answer never make the least TEL larger.

*Proof.* Keep the start steps of an optimal schedule: with more memory it is feasible,
without one request the usage of the others is the same, and with a shorter answer usage
is lower.
Completions are the same or sooner. QED.

The same argument gives weak monotonicity in the prompt. Proved above; checked on a grid
against exact optima. List rules do have anomalies: `test_counterexample_anomalies.py`.
"""

from __future__ import annotations

import pytest

from proofs_checks import tiny
from proofs_checks.search import KINDS, changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_relief_is_one(kind: str) -> None:
    """The optimum after the change is at most the optimum before it."""
    for instance in tiny.all_instances(3, 3, 3, every=43):
        before = tiny.optimum(instance)
        assert before is not None
        for i in range(3):
            if kind == "shorter" and instance.decode[i] == 1:
                continue
            after = tiny.optimum(changed(instance, kind, i))
            assert after is not None
            assert after.tel <= before.tel
