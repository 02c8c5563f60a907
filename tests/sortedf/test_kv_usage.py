"""KV in use over time: equal to adding up what every request holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance
from sortedf.kv_usage import kv_used_at
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.traces.prefix_ids import PrefixIds
from tests.strategies import engines, instances

pytestmark = pytest.mark.kernel


@given(instances(engine=engines()), st.data())
def test_equals_a_sum_over_requests(instance, data):
    """In every step from 0 to after the last completion, whatever the starts are."""
    n = instance.num_requests
    start = np.array(
        data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n)), int
    )
    end = start + instance.decode
    steps = np.arange(int(end.max(initial=0)) + 3)
    block = instance.engine.block_size
    expected = [
        sum(
            -(-(int(s) + t - int(p)) // block) * block
            for s, p, c in zip(instance.prefill, start, end, strict=True)
            if p < t <= c
        )
        for t in steps.tolist()
    ]
    assert kv_used_at(instance, start, steps).tolist() == expected


def test_some_steps_can_be_left_out():
    """What started and completed between two of the steps does not count."""
    instance = Instance([5, 3, 7], [2, 1, 4], engine=EngineModel(100, block_size=4))
    start = np.array([0, 3, 6])
    assert kv_used_at(instance, start, np.array([2, 9])).tolist() == [8, 12]


def test_a_prefix_counts_once_as_long_as_one_of_those_that_share_it_runs():
    """Four tokens of six: one inside another's time, one that overlaps, two later."""
    decode, start = [20, 3, 15, 9, 2], [0, 2, 10, 40, 43]
    prompts = [[1, 2, 3, 4, 10 + i] for i in range(5)]
    shared = SharedPrefixes.of_prefix_ids(PrefixIds.of_lists(prompts, 1), [5] * 5, 1)
    engine = EngineModel(100, prefix_caching=True)
    instance = Instance([5] * 5, decode, None, engine=engine, prefixes=shared)
    for step in range(55):
        here = [
            5 + step - p
            for p, o in zip(start, decode, strict=True)
            if p < step <= p + o
        ]
        expected = sum(here) - 4 * max(len(here) - 1, 0)
        assert kv_used_at(instance, np.array(start), np.array([step])) == expected
