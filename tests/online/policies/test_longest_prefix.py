"""Longest prefix first: cached prompts start first, and none waits for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policies.longest_prefix import PrefixQueue
from online.prompt_chains import PromptChains
from online.simulator import simulate
from sortedf import Instance
from sortedf.engine_model import EngineModel
from tests.strategies import examples

RULES = EngineModel.vllm(
    160, block_size=4, max_num_seqs=4, max_batched_tokens=64, prefix_caching=True
)


def stream(n):
    """Requests with one prefix of 24 tokens, two a step; the 9th shares nothing."""
    own = [np.arange(6) for _ in range(n)]
    own[8] = np.zeros(0, dtype=np.int64)
    instance = Instance([28] * n, [4] * n, 160, arrival=np.arange(n) // 2)
    return instance, PromptChains(4, own)


def passed_over(log, i):
    """Later requests that started before request `i`."""
    later = np.arange(len(log.decode)) > i
    return int((later & (log.start_step < log.start_step[i])).sum())


@pytest.mark.parametrize("most", [0, 1, 7, 20])
@pytest.mark.parametrize("admission", ["engine", "look-ahead"])
def test_a_hot_stream_does_not_starve_a_cold_request(most, admission):
    """It is passed over as often as allowed, and not once more."""
    instance, chains = stream(80)
    options = {"most_passed": most, "admission": admission}
    log = simulate(instance, "longest-prefix", RULES, chains=chains, options=options)
    assert passed_over(log, 8) <= most
    assert max(passed_over(log, i) for i in range(80)) <= most
    unbounded = simulate(
        instance, "longest-prefix", RULES, chains=chains,
        options={**options, "most_passed": 1000},
    )  # fmt: skip
    assert passed_over(unbounded, 8) > 30


def test_zero_is_first_come_first_served():
    instance, chains = stream(40)
    logs = [
        simulate(instance, name, RULES, chains=chains, options=options)
        for name, options in (("fcfs", {}), ("longest-prefix", {"most_passed": 0}))
    ]
    assert logs[0].start_step.tolist() == logs[1].start_step.tolist()


@given(st.data(), st.integers(1, 8), st.integers(0, 5))
@examples(200)
def test_bounded_order_is_that_of_the_slow_twin(data, n, most):
    """One place after the other: the wanted one, unless it would pass over too many."""
    queue = PrefixQueue(most, 128)
    line = list(range(n))
    order = data.draw(st.permutations(line))
    passed = {i: data.draw(st.integers(0, most)) for i in line}
    queue._passed = dict(passed)  # a preempted request is counted from 0 again
    expected: list[int] = []
    while len(expected) < n:
        rest = [i for i in order if i not in expected]
        oldest = min(rest)
        # The next one may start only if none before it is passed over too often.
        allowed = [
            i for i in rest
            if all(passed[j] < most for j in rest if j < i) or i == oldest
        ]  # fmt: skip
        chosen = rest[0] if rest[0] in allowed else oldest
        for j in rest:
            passed[j] += j < chosen
        expected.append(chosen)
    count = data.draw(st.integers(1, n))
    assert queue._bounded(line, list(order), count) == expected[:count]


@pytest.mark.parametrize("options", [{"most_passed": -1}, {"window": 0}])
def test_bad_options_are_refused(options):
    instance, chains = stream(9)
    with pytest.raises(ValueError, match="but must be an integer"):
        simulate(instance, "longest-prefix", RULES, chains=chains, options=options)
