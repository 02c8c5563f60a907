"""Answer lengths as predicted, or raised: until which step they stay as they are."""

from __future__ import annotations

import math

import pytest

from online import step_kernels as k
from online.policies.parts.lengths import PredictedLengths, Raised
from tests.online.policies.states import World

pytestmark = pytest.mark.kernel


@pytest.fixture
def world():
    """Two run, with 2 and 3 tokens of 10 and 6 that were predicted; one waits."""
    world = World([5] * 3, [30] * 3)
    world.table.ints[k.PREDICTED, :3] = [10, 6, 4]
    world.arrive(range(3))
    return world


def begin(world, lengths):
    lengths.update(world.look())
    world.start([0, 1])
    world.table.ints[k.OUTPUT_TOKENS, :2] = [2, 3]
    world.step = 100
    state = world.look()
    lengths.update(state)
    return state


def test_predictions_do_not_change_by_themselves(world):
    lengths = PredictedLengths()
    assert lengths.same_until(begin(world, lengths), [2]) == math.inf
    assert lengths.by_id[:3].tolist() == [10, 6, 4]


def test_a_multiple_changes_when_the_first_of_them_is_outlived(world):
    """In three steps, or in one, by the first token of one that starts now."""
    lengths = Raised(2.0)
    state = begin(world, lengths)
    assert lengths.same_until(state, []) == 103
    assert lengths.same_until(state, [2]) == 103
    world.table.ints[k.OUTPUT_TOKENS, 2] = 3
    assert lengths.same_until(state, [2]) == 101


def test_one_more_token_may_be_added_in_every_step_or_once(world):
    lengths = Raised(1.0)
    assert lengths.same_until(begin(world, lengths), [2]) == math.inf


def test_nothing_runs_that_could_outlive_its_length():
    lengths = Raised(2.0)
    state = World([5], [30]).look()
    lengths.update(state)
    assert lengths.same_until(state, []) == math.inf


@pytest.mark.parametrize("kind", [PredictedLengths, Raised])
def test_lengths_are_read_only(world, kind):
    """So that one compiled kernel takes either kind."""
    lengths = kind()
    begin(world, lengths)
    assert not lengths.by_id.flags.writeable


def test_a_multiple_is_rounded_up(world):
    lengths = Raised(1.5)
    begin(world, lengths)
    world.table.ints[k.OUTPUT_TOKENS, 1] = 6
    lengths.update(world.look())
    assert lengths.by_id[1] == 11  # 1.5 times 7 tokens


def test_a_new_prediction_counts_until_an_eviction(world):
    """Afterwards the tokens that were lost say more."""
    lengths = Raised()
    begin(world, lengths)
    world.table.ints[k.PREDICTED, :2] = [20, 21]
    world.table.ints[k.PREEMPTIONS, 1] = 1
    lengths.update(world.look(changed=[0, 1]))
    assert lengths.by_id[:2].tolist() == [20, 6]
