"""Claim: the exhaustive checks of this folder compute the same as `sortedf`.

`tiny.py` writes optimal schedules, list rules, groups and placement a second time, in
compiled loops. Sampled here: on instances of up to five requests it gives the TEL and
the starts of `sortedf.solve`, and its optimum is that of the step-by-step brute force
of the tests. So a claim checked with the twins on all instances holds for the package.
"""

from __future__ import annotations

import numpy as np
import pytest

from proofs_checks import tiny
from sortedf import Instance, solve
from tests import naive


def random_instances(count: int, n: int, longest: int) -> list[Instance]:
    """Draw backlogs with budgets between the largest peak and all peaks."""
    rng = np.random.default_rng([count, n, longest])
    drawn = []
    for _ in range(count):
        prefill, decode = rng.integers(1, longest + 1, (2, n))
        peaks = prefill + decode
        budget = int(rng.integers(peaks.max(), peaks.sum()))
        drawn.append(Instance(prefill, decode, budget))
    return drawn


@pytest.mark.parametrize("rule", tiny.RULES)
def test_rules_start_the_same(rule: str) -> None:
    """Each list rule has the same start steps in both implementations."""
    for instance in random_instances(60, 5, 6):
        ours = solve(instance, rule, bound="none").schedule.start
        assert tiny.listed(instance, rule).start.tolist() == ours.tolist()


def test_optima_are_equal() -> None:
    """The exact search finds the TEL of brute force over all start steps."""
    for instance in random_instances(25, 4, 4):
        found = tiny.optimum(instance)
        assert found is not None
        assert found.tel == naive.best_tel(instance)
