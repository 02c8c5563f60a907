"""Sampled: Sorted-F with A-min's estimates degrades with the logarithm of the error.

A-min (arXiv 2508.14544) knows only lower bounds of answer lengths; its paper proves a
factor of order `log(1 / alpha)` against shortest answer first with known lengths and
equal prompts, `alpha` the least quotient of a bound and its length. For Sorted-F with
such estimates ("Sorted-F + Amin") we know of no constant, and prove none.

What is checked, in the papers' model (evicted requests start again from nothing):

* right estimates give Sorted-F's own schedule, so that no constant below Sorted-F's can
  hold at `alpha = 1`: 855 / 553 there (`test_counterexample_sorted_f_pairs.py`), more
  than the 3/2 below;
* sampled: on random instances of up to four requests whose bounds are a half, a quarter
  or an eighth of the lengths, TEL is at most `3/2 + log2(1 / alpha)` times the exact
  optimum (the worst seen in a longer search of 2,800 were 1.67, 1.88 and 2.0; it is
  kept below);
* exactly: with right estimates no request is evicted and the starts are Sorted-F's;
* every request completes, in every run.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from online.simulator import simulate
from proofs_checks import tiny
from sortedf import Instance

if TYPE_CHECKING:
    from online.run_log import RunLog

SHRINK = (1, 2, 4, 8)
"""Divisors of the lengths: powers of two, so the logarithm is an integer."""


def run(instance: Instance, predicted: list[int]) -> RunLog:
    """Run Sorted-F with estimates, groups exact, in the papers' model."""
    rules = instance.engine
    return simulate(
        instance,
        "sorted-f-amin",
        rules,
        predicted=predicted,
        options={"groups": "exact"},
    )


def random_instance(rng: np.random.Generator) -> Instance:
    """Draw a tiny backlog whose answers are powers of two."""
    n = int(rng.integers(2, 5))
    prefill, decode = rng.integers(1, 7, n), rng.choice(SHRINK, n)
    peaks = prefill + decode
    budget = int(rng.integers(peaks.max(), peaks.sum()))
    return Instance(prefill, decode, budget)


def test_the_factor_is_kept_on_samples() -> None:
    """Against exact optima, in integers."""
    rng = np.random.default_rng(11)
    evicted = 0
    for _ in range(120):
        instance = random_instance(rng)
        shrink = rng.choice(SHRINK, instance.num_requests)
        predicted = np.maximum(instance.decode // shrink, 1)
        inverse = int((instance.decode // predicted).max())  # 1 / alpha
        log = run(instance, predicted.tolist())
        best = tiny.optimum(instance)
        assert best is not None
        assert log.completed.all()
        factor = Fraction(3, 2) + inverse.bit_length() - 1
        assert int(log.completion_step.sum()) <= factor * best.tel
        evicted += int(log.preemptions.sum())
    assert evicted


def test_the_worst_that_was_seen() -> None:
    """Twice the optimum, with three evictions, at `alpha = 1/8`."""
    instance = Instance([3, 2, 2], [8, 4, 2], 12)
    log = run(instance, [1, 1, 2])
    best = tiny.optimum(instance)
    assert best is not None
    assert int(log.preemptions.sum()) == 3
    assert int(log.completion_step.sum()) == 2 * best.tel


def test_right_estimates_give_sorted_f() -> None:
    """The same start steps, and no request is evicted."""
    rng = np.random.default_rng(12)
    for _ in range(40):
        instance = random_instance(rng)
        log = run(instance, instance.decode.tolist())
        assert not log.preemptions.any()
        planned = tiny.listed(instance, "sorted-f").start
        assert (log.start_step - 1).tolist() == planned.tolist()
