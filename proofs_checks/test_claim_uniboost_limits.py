"""Claim: UniBoost is first come first served for large gamma, least attained for small.

UniBoost (arXiv 2606.18431) serves the least `phi = a - b(w)` first, with
`b(w) = ln(1 / (1 - exp(-gamma w))) / gamma` for an attained work `w`. Let arrivals and
works be integers, works from 1 to `W`, arrivals at most `A >= 1` apart.

* For `gamma > ln 2` the order is that of arrivals, works only break ties:
  `0 < b(w) <= b(1) < 1`, as `1 - exp(-gamma) > exp(-gamma)`.
* For `gamma < ln(1 + 1/A) / W` it is that of attained works, and arrivals only break
  ties: `-b'(x) = 1 / (exp(gamma x) - 1)`, so for `w < w'`
  `b(w) - b(w') >= 1 / (exp(gamma W) - 1) > A`.

Proved above, with thresholds of our own; the paper states the limits. Checked: all
pairs of works and arrivals up to 30, in floating point, and whole runs of the
policies: the same starts and completions as `fcfs` for an infinite gamma; the same as
`las` for a tiny one, with a hysteresis so that ties broken by arrival evict no request
(`las` does not evict on ties). Runs are sampled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from online.policies.parts.boost import boost
from online.simulator import simulate
from sortedf import Instance
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from online.run_log import RunLog

MOST = 30


def scores(gamma: float) -> list[tuple[float, int, int]]:
    """List `(phi, a, w)` for all arrivals and works."""
    works = np.arange(1, MOST + 1)
    b = boost(works.astype(float), gamma).tolist()
    return [(a - b[w - 1], a, w) for a in range(MOST + 1) for w in works.tolist()]


def test_a_large_gamma_orders_by_arrival() -> None:
    """Just above `ln 2` it is so already, for all works."""
    for gamma in (math.log(2) + 1e-9, 1.0, math.inf):
        by_score = [a for _, a, _ in sorted(scores(gamma))]
        assert by_score == sorted(by_score)


def test_a_small_gamma_orders_by_attained_work() -> None:
    """Just below the threshold it is so already; arrivals settle ties."""
    gamma = math.log(1 + 1 / MOST) / MOST * (1 - 1e-6)
    order = [(w, a) for _, a, w in sorted(scores(gamma))]
    assert order == sorted(order)


def random_case(rng: np.random.Generator) -> tuple[Instance, EngineModel]:
    """Draw requests that arrive one after another, with little memory."""
    prefill, decode = rng.integers(1, 10, (2, 9))
    budget = int((prefill + decode).max() + rng.integers(0, 12))
    instance = Instance(prefill, decode, budget, rng.integers(0, 25, 9))
    return instance, EngineModel.vllm(budget)


def run(case: tuple[Instance, EngineModel], policy: str, **options: Any) -> RunLog:
    """Simulate; the log is checked against the invariants of a run."""
    instance, rules = case
    return simulate(instance, policy, rules, options=options)


def same(one: RunLog, other: RunLog) -> bool:
    """Whether every request starts, is preempted and completes alike."""
    return bool(
        one.start_step.tolist() == other.start_step.tolist()
        and one.completion_step.tolist() == other.completion_step.tolist()
        and one.preemptions.tolist() == other.preemptions.tolist()
    )


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("fcfs", {"gamma": math.inf}),
        ("las", {"gamma": 1e-9, "hysteresis": 100.0}),
    ],
)
def test_whole_runs_are_the_same(policy: str, options: dict[str, Any]) -> None:
    """Forty random runs each."""
    rng = np.random.default_rng(9)
    for _ in range(40):
        case = random_case(rng)
        assert same(run(case, "uniboost-base", **options), run(case, policy))


def test_the_two_limits_differ() -> None:
    """The two policies differ on these runs, so the check above is not empty."""
    rng = np.random.default_rng(9)
    cases = [random_case(rng) for _ in range(10)]
    assert any(not same(run(case, "fcfs"), run(case, "las")) for case in cases)
