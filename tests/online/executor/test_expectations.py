"""What is expected of an answer: own hints, then a ranker, then completed answers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from online import step_kernels as k
from online.executor.expectations import Arriving, Expectations
from online.executor.scheduler_options import SchedulerOptions
from online.ranking.scorer_service import Scored
from online.requests import RequestTable


class Scorer:
    """Stands for the scorer's process: scores come when the test says so."""

    failed = None

    def __init__(self):
        self.asked, self.done, self.cancelled = {}, [], []

    def submit(self, key, prompt):
        self.asked[key] = prompt

    def cancel(self, key):
        self.cancelled.append(key)

    def take(self):
        done, self.done = self.done, []
        return done


@pytest.fixture
def expect():
    options = SchedulerOptions.of({"predictor": {"name": "history", "least": 1}})
    expectations = Expectations(options, longest=1000, slots=100, tokenizer=None)
    expectations.table, expectations.scores = RequestTable(), Scorer()
    return expectations


def enter(expect, prefill=10, most=50, **extra):
    return expect.enter(Arriving(prefill, most, extra, [1] * prefill), 0.0)


def expected(expect, i):
    return int(expect.table.ints[k.PREDICTED, i]), float(expect.table.score[i])


def test_a_length_that_does_not_fit_the_cache_is_cut(expect):
    i = enter(expect, prefill=90, predicted_tokens=40)
    assert expected(expect, i)[0] == 11


def test_scores_are_entered_for_those_that_still_wait_for_them(expect):
    asked = [enter(expect), enter(expect, predicted_tokens=7), enter(expect)]
    both = enter(expect, predicted_tokens=7, rank_score=2.0)
    assert sorted(expect.scores.asked) == [1, 2, 3]
    expect.ended(asked[2], None)
    assert expect.scores.cancelled == [3]
    expect.scores.done = [Scored(key, 0.5, 31.0) for key in (1, 2, 3)]
    assert expect.awaits_scores
    assert expect.take_scores() == asked[:2]
    assert not expect.awaits_scores
    assert expected(expect, asked[0]) == (31, 0.5)
    assert expected(expect, asked[1]) == (7, 0.5)  # its own length has priority
    assert math.isnan(expected(expect, asked[2])[1])
    assert expected(expect, both) == (7, 2.0)


def test_a_scorer_that_failed_is_waited_for_no_longer(expect):
    enter(expect)
    expect.scores.failed = "it died"
    assert expect.take_scores() == []
    assert not expect.awaits_scores


def test_a_preempted_request_that_outlived_its_length_gets_a_new_one(expect):
    expect.ended(enter(expect), 30)
    i = enter(expect, predicted_tokens=5)
    expect.table.ints[k.OUTPUT_TOKENS, i] = 4
    expect.preempted(i)
    assert expected(expect, i)[0] == 5
    expect.table.ints[k.OUTPUT_TOKENS, i] = 5
    expect.preempted(i)
    assert expected(expect, i)[0] == 30


def test_cancelled_answers_teach_nothing(expect):
    expect.ended(enter(expect), None)
    assert expected(expect, enter(expect))[0] == 50
    expect.ended(enter(expect), 20)
    assert expected(expect, enter(expect))[0] == 20


def test_hints_that_are_not_believed_are_corrected():
    """By the client's past; and what is outlived is raised, within `max_tokens`."""
    options = SchedulerOptions.of({"trust_hints": "corrected"})
    expect = Expectations(options, longest=1000, slots=2000, tokenizer=None)
    expect.table = RequestTable()
    hint = {"predicted_tokens": 1, "client": "liar"}
    for _ in range(30):
        expect.ended(enter(expect, most=900, **hint), 300)
    i = enter(expect, most=900, **hint)
    assert expected(expect, i)[0] == pytest.approx(300, abs=5)
    assert expected(expect, enter(expect, most=50, **hint))[0] == 50
    assert expect.raises_lengths
    expect.table.ints[k.OUTPUT_TOKENS, i] = 800
    assert expect.raise_outlived(np.array([i])) == [i]
    assert expected(expect, i)[0] == 900


def test_the_ranker_is_closed(expect):
    closed = []
    expect.scores = SimpleNamespace(close=lambda: closed.append(True))
    expect.close()
    assert closed == [True]
