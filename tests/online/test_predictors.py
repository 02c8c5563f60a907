"""Lengths learned from finished answers, in the simulator as in an engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.policy import make_policy
from online.predictors import make_predictor
from online.simulator import simulate
from sortedf import Instance
from sortedf.engine_model import EngineModel


@given(
    st.lists(st.lists(st.integers(1, 40), max_size=9), max_size=9),
    st.integers(0, 40),
    st.integers(1, 12),
)
def test_history_is_the_mean_of_longer_answers(batches, output_tokens, least):
    """Equal to looking through all that was taken in, in batches that grow."""
    history = make_predictor("history", longest=40, least=least)
    known, waiting = [], []
    for batch in batches:
        history.observe(batch)
        waiting += batch
        if len(waiting) >= max(least, len(known) // 8):
            known += waiting
            waiting = []
    if not known:
        assert history.predict(output_tokens) is None
        return
    longer = [length for length in known if length > output_tokens]
    expected = np.ceil(np.mean(longer)) if longer else 2 * max(output_tokens, 1)
    if not longer and output_tokens == 0:
        expected = 1
    assert history.predict(output_tokens) == pytest.approx(expected, abs=1e-9)


def test_long_answers_count_as_the_longest():
    history = make_predictor("history", longest=50, least=1)
    history.observe([1000])
    assert history.predict() == 50
    assert history.predict(output_tokens=60) == 60 + 50


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="unknown predictor 'oracle'"):
        make_predictor("oracle")
    with pytest.raises(ValueError, match="least = 0"):
        make_predictor("history", least=0)


class Seen:
    """Keeps the predicted lengths of those that come."""

    def __init__(self):
        self.policy = make_policy("svf")
        self.predicted = {}

    def decide(self, state):
        for i in state.joined:
            self.predicted[i] = int(state.requests.predicted[i])
        return self.policy.decide(state)


def test_the_simulator_learns_as_it_goes():
    """What comes early is taken by what was told; the later ones by the mean so far."""
    n = 40
    instance = Instance([4] * n, [5, 15] * (n // 2), 100, arrival=np.arange(n) * 20)
    policy = Seen()
    simulate(instance, policy, EngineModel.vllm(100), predicted=np.full(n, 99),
             predictor=make_predictor("history", longest=90, least=8))  # fmt: skip
    early = [policy.predicted[i] for i in range(8)]
    assert set(early) == {97}  # as told, and no more than the cache holds
    assert policy.predicted[n - 1] == 10


def test_history_is_better_than_nothing_for_the_order():
    """With a cache for one long answer, a wrong maximum delays no request."""
    rng = np.random.default_rng(4)
    n = 200
    instance = Instance(
        rng.integers(1, 30, n), rng.integers(1, 40, n), 400, arrival=np.arange(n)
    )
    blind = simulate(instance, "svf", EngineModel.vllm(400), predicted=np.full(n, 399))
    learned = simulate(
        instance, "svf", EngineModel.vllm(400), predicted=np.full(n, 399),
        predictor=make_predictor("history", longest=399, least=8),
    )  # fmt: skip
    assert learned.completion_s.mean() < 0.7 * blind.completion_s.mean()
