"""The running requests of an engine: counted late, and never lost."""

from __future__ import annotations

import numpy as np
import pytest

from online import step_kernels as k
from online.executor.running import Running, Started
from online.requests import RequestTable

pytestmark = pytest.mark.kernel


@pytest.fixture
def table():
    """Six requests of prompts of 10 tokens."""
    return RequestTable.of_arrays(np.full(6, 10), np.full(6, 50), np.zeros(6))


def output_tokens(table):
    return table.ints[k.OUTPUT_TOKENS, :6].tolist()


def test_tokens_are_those_of_the_steps_in_which_a_request_ran(table):
    """A request that starts makes none of those that are not entered yet."""
    running = Running(table, 6)
    assert (len(running), running.ids().tolist()) == (0, [])
    running.start([4, 2])
    running.each_made_one(1)
    running.each_made_one(2)
    running.start([0])
    running.each_made_one(3)
    assert output_tokens(table) == [0, 0, 2, 0, 2, 0]
    running.catch_up([2])
    assert output_tokens(table) == [1, 0, 3, 0, 3, 0]
    assert table.ints[k.LAST_TOKEN, [0, 2, 4]].tolist() == [3, 3, 3]
    assert running.ids().tolist() == [4, 0]


def test_there_is_room_for_more_than_was_said(table):
    """Also among those that are gone: requests that waited may have been cancelled."""
    running = Running(table, 1)
    running.start([0])
    running.start([1, 2, 3])
    assert running.ids().tolist() == [0, 1, 2, 3]
    running.catch_up([5, 4, 3, 1])
    assert running.ids().tolist() == [0, 2]
    running.replace([2, 3, 0])
    assert running.ids().tolist() == [2, 3, 0]


def test_a_prompt_in_parts_does_not_start_whole(table):
    """Then nothing is entered; otherwise its first token is still to be counted."""
    running = Running(table, 6)
    assert not running.start_whole([Started(0, 10, 10), Started(1, 4, 4)])
    assert len(running) == 0
    assert running.start_whole([Started(0, 10, 10), Started(1, 2, 10)])
    running.each_made_one(1)
    running.catch_up()
    assert table.ints[k.COMPUTED, :2].tolist() == [10, 10]
    assert output_tokens(table)[:2] == [1, 1]


def test_a_request_that_starts_again_computes_its_answer_so_far_too(table):
    table.ints[k.OUTPUT_TOKENS, 3] = 4
    running = Running(table, 6)
    assert not running.start_whole([Started(3, 10, 10)])
    assert running.start_whole([Started(3, 14, 14)])


def test_tokens_so_far_are_entered_before_others_run(table):
    running = Running(table, 6)
    running.start([0, 1])
    running.each_made_one(1)
    running.replace([1, 2])
    assert running.ids().tolist() == [1, 2]
    assert table.ints[k.OUTPUT_TOKENS, :3].tolist() == [1, 1, 0]
