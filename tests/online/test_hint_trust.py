"""What a client gains by lying: nothing, once some of its answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import step_kernels as k
from online.hint_trust import (
    COLD,
    LEAST,
    MOST_CLIENTS,
    HintTrust,
    make_trust,
    steps_to_outlive,
)
from online.requests import RequestTable
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.traces import Trace

NAN = math.nan


class Stream:
    """Answers of clients, one after the other."""

    def __init__(self, trust=None):
        self.trust = trust or HintTrust()
        self.count = 0

    def answer(self, client, hint, output_tokens, score=NAN):
        self.count += 1
        expected = self.trust.enter(self.count, client, hint, score)
        self.trust.ended(self.count, output_tokens)
        return expected

    def ask(self, client, hint, score=NAN):
        expected = self.trust.enter(-1, client, hint, score)
        self.trust.ended(-1, None)
        return expected


def warmed_up(lengths=(50, 150)):
    stream = Stream()
    for n in range(2 * LEAST):
        stream.answer("others", lengths[n % 2], lengths[n % 2])
    return stream


@given(st.integers(1, 10_000))
def test_a_new_client_gets_the_mean_of_all_whatever_it_says(hint):
    assert Stream().ask("new", hint)[0] == COLD
    assert warmed_up().ask("new", hint)[0] == 100


@pytest.mark.parametrize(
    "lie", [lambda o: 1, lambda o: o // 2, lambda o: 10 * o, lambda o: o]
)
def test_a_client_that_always_lies_alike_is_read_aright(lie):
    stream = warmed_up()
    rng = np.random.default_rng(1)
    for output_tokens in rng.integers(500, 1500, 400).tolist():
        stream.answer("liar", lie(output_tokens), output_tokens)
    expected = stream.ask("liar", lie(1000))[0]
    assert expected == pytest.approx(1000, rel=0.15)


def test_hints_at_random_tell_little():
    """What a client says at random is read as the mean of its answers."""
    stream = warmed_up()
    rng = np.random.default_rng(2)
    for _ in range(3000):
        stream.answer("liar", int(2 ** rng.uniform(0, 12)), 1000)
    asked = [stream.ask("liar", 3 * 2**n)[0] for n in range(9)]
    assert 600 < min(asked) <= max(asked) < 1600


def test_one_who_lies_now_and_then_loses_only_where_it_lied():
    stream = warmed_up()
    for n in range(400):
        stream.answer("liar", 1 if n % 2 else 600, 600)
    assert stream.ask("liar", 1)[0] > 500
    assert stream.ask("liar", 600)[0] == pytest.approx(600, rel=0.2)


def test_an_honest_past_is_no_licence_to_say_one():
    """Honest with long answers for long, then 1 for each: it is not believed."""
    stream = warmed_up()
    for _ in range(100):
        stream.answer("turned", 900, 900)
    assert stream.ask("turned", 900)[0] == pytest.approx(900, rel=0.05)
    assert stream.ask("turned", 700)[0] == pytest.approx(700, rel=0.05)
    assert stream.ask("turned", 1)[0] > 800


def test_a_client_that_changes_is_noticed():
    stream = warmed_up()
    for _ in range(2000):
        stream.answer("turned", 10, 10)
    assert stream.ask("turned", 10)[0] < 20
    for _ in range(600):
        stream.answer("turned", 10, 900)
    assert stream.ask("turned", 10)[0] > 600


@given(st.floats(0.1, 5.0), st.floats(-100, 100))
def test_ranks_are_read_like_lengths(scale, shift):
    """On any scale; a client that puts itself first is put where its answers are."""
    stream = warmed_up()
    rng = np.random.default_rng(3)
    for output_tokens in rng.integers(10, 300, 500).tolist():
        stream.answer(
            "honest", None, output_tokens, score=scale * output_tokens + shift
        )
        stream.answer("liar", None, 1000, score=-1e6)
    short, long = (
        stream.ask("honest", None, score=scale * output_tokens + shift)[1]
        for output_tokens in (20, 280)
    )
    assert short < 110 < 190 < long
    assert stream.ask("liar", None, score=-1e6)[1] > 900
    assert math.isnan(stream.ask("honest", None)[1])


def test_a_client_without_hints_is_known_by_its_answers():
    stream = warmed_up()
    for _ in range(100):
        stream.answer("silent", None, 700)
    assert stream.ask("silent", None)[0] == pytest.approx(700, rel=0.05)


def test_with_hints_off_all_are_alike():
    stream = Stream(make_trust("off"))
    for n in range(100):
        stream.answer("liar", 1, 900 if n % 2 else 100, score=-3.0)
    assert stream.ask("liar", 1, score=-3.0) == (500, 500.0)
    assert stream.ask("other", 5000, score=9.0) == (500, 500.0)


def test_cancelled_answers_teach_nothing_and_clients_are_forgotten():
    stream = warmed_up()
    for _ in range(50):
        stream.answer("liar", 1, None)
    assert stream.ask("liar", 1)[0] == 100
    stream.answer("old", 1, 5000)
    for n in range(MOST_CLIENTS):
        stream.answer(n, 100, 100)
    assert stream.ask("old", 1)[0] < 300
    with pytest.raises(KeyError):  # what has ended is forgotten
        stream.trust.ended(stream.count, 100)


def test_modes_are_named():
    assert make_trust("on") is None
    with pytest.raises(ValueError, match="'maybe' but must be one of: on, corrected"):
        make_trust("maybe")


def test_outlived_lengths_are_raised_by_half_at_least_and_within_limits():
    trust = HintTrust()
    table = RequestTable.of_arrays(np.full(4, 10), np.full(4, 99), np.zeros(4))
    table.ints[k.PREDICTED, :4] = [5, 100, 100, 60]
    table.ints[k.OUTPUT_TOKENS, :4] = [5, 100, 99, 60]
    ids = np.arange(4)
    assert steps_to_outlive(table, ids) == 1
    limits = [1000, 1000, 1000, 60]
    assert trust.raise_outlived(table, ids, limits.__getitem__) == [0, 1]
    assert table.ints[k.PREDICTED, :4].tolist() == [13, 150, 100, 60]
    assert steps_to_outlive(table, ids[[0, 3]]) == 8
    assert steps_to_outlive(table, ids[3:]) == math.inf
    for _ in range(LEAST):
        trust.enter(9, None, None, NAN)
        trust.ended(9, 400)
    table.ints[k.OUTPUT_TOKENS, 0] = 13
    assert trust.raise_outlived(table, ids, limits.__getitem__) == [0]
    assert table.ints[k.PREDICTED, 0] == 400


@pytest.mark.parametrize(
    ("policy", "options"), [("svf", {}), ("srpt", {}), ("pars", {"starvation_s": 1e5})]
)
def test_a_liar_no_longer_starves_the_others(policy, options):
    """The story: one client says 1 for answers of 400, and all others wait for it."""
    rng = np.random.default_rng(4)
    n = 400
    is_liar = rng.random(n) < 0.5
    decode = np.where(is_liar, 400, rng.integers(20, 200, n))
    arrival_s = np.cumsum(rng.exponential(9.0, n))
    trace = Trace(np.full(n, 20), decode, arrival_s)
    hints = np.where(is_liar, 1, decode)
    clients = np.where(is_liar, "liar", "honest").tolist()

    def honest_mean(hints, trust):
        log = simulate(
            trace, policy, EngineModel.vllm(4000), predicted=hints, score=hints,
            trust_hints=trust, clients=clients, options=options,
        )  # fmt: skip
        return float((log.completion_s - arrival_s)[~is_liar].mean())

    fair, robbed = honest_mean(decode, "on"), honest_mean(hints, "on")
    assert robbed > 2 * fair
    assert honest_mean(hints, "corrected") < 0.5 * robbed
