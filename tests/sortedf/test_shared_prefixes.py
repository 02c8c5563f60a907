"""The forest of shared prefixes: what it is made from, and what it holds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.prompt_chains import PromptChains
from sortedf import EngineModel, Instance, Schedule, check
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.traces import Trace
from sortedf.traces.prefix_ids import PrefixIds
from tests import naive
from tests.strategies import shared_instances

TWO = SharedPrefixes([-1, 0], [4, 2], [0, 1, 1, -1])


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_any_two_prompts_share_what_their_chains_share(data, per_id, block):
    """By the step engine's keys of single blocks, but for the last token's block."""
    n = data.draw(st.integers(1, 7))
    lists = data.draw(
        st.lists(st.lists(st.integers(0, 1), max_size=6), min_size=n, max_size=n)
    )
    prefill = data.draw(st.lists(st.integers(1, 30), min_size=n, max_size=n))
    ids = PrefixIds.of_lists(lists, per_id)
    shared = SharedPrefixes.of_prefix_ids(ids, prefill, block)
    chains = PromptChains.of_hash_ids(ids, prefill, block)
    own = [
        chains.keys[chains.offset[i] : chains.offset[i + 1]][
            : (prefill[i] - 1) // block
        ]
        for i in range(n)
    ]
    for i in range(n):
        for j in range(i):
            length = min(len(own[i]), len(own[j]))
            same = own[i][:length] == own[j][:length]
            common = length if same.all() else int(np.argmin(same))
            assert _common(shared, i, j) == common


def _common(shared, i, j):
    """Blocks of the nodes that both requests have."""
    if shared is None:
        return 0
    both = set(shared.path(i)) & set(shared.path(j))
    return int(sum(shared.blocks[k] for k in both))


@given(shared_instances(), st.data())
def test_usage_is_that_of_the_twin_in_every_step(instance, data):
    """The kernel's sweep, the checker, and a count of nodes in every single step."""
    n = instance.num_requests
    start = data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    late = np.maximum(start, instance.arrival)
    schedule = Schedule(instance, late)
    twin = dict(enumerate(late.tolist()))
    peak = max(
        naive.kv_used(instance, twin, step) for step in range(1, schedule.makespan + 1)
    )
    report = check(instance, late)
    assert schedule.peak_kv == report.peak_kv == peak
    assert report.feasible == naive.is_feasible(instance, twin)
    time, used = schedule.kv_usage()
    steps = time + np.tile([0, 1], len(time) // 2)
    assert used.tolist() == [naive.kv_used(instance, twin, t) for t in steps.tolist()]


def test_a_subset_keeps_what_it_shares():
    """A node that one request is left with is that request's own."""
    engine = EngineModel(40, prefix_caching=True)
    whole = Instance([5, 8, 9, 3], [2, 2, 2, 2], None, None, engine, TWO)
    part = whole.subset([3, 2, 0])
    assert part.prefixes is not None
    assert part.prefixes.blocks.tolist() == [4]
    assert part.prefixes.leaf.tolist() == [-1, 0, 0]
    assert whole.subset([3, 2]).prefixes is None
    assert whole.subset([1, 2]).prefixes.blocks.tolist() == [6]
    again = pickle.loads(pickle.dumps(whole))
    assert again.prefixes.depth.tolist() == [4, 6]
    assert not again.prefixes.parent.flags.writeable


def test_traces_give_the_forest_where_the_engine_caches_prefixes():
    """Requests that are left out share nothing."""
    ids = PrefixIds.of_lists([[7, 8], [7, 9], [7, 9]], 4)
    trace = Trace([9, 9, 90], [2, 2, 2], prefix_ids=ids)
    cached = EngineModel(60, 2, prefix_caching=True)
    instance, _ = trace.to_instance(engine=cached, drop_oversize=True)
    assert instance.prefixes.blocks.tolist() == [2]
    assert trace.to_instance(100)[0].prefixes is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (([0], [1], [0]), r"parent\[0\] = 0 but must be below 0"),
        (([-1], [0], [0]), r"blocks\[0\] = 0 but must be"),
        (([-1], [1], [1]), r"leaf\[0\] = 1 but must be"),
        (([-1, -1], [1], [0]), "parent has 2 entries but blocks has 1"),
    ],
)
def test_what_is_no_forest_is_refused(fields, message):
    """The first wrong entry is named."""
    with pytest.raises(ValueError, match=message):
        SharedPrefixes(*fields)


@pytest.mark.parametrize(
    ("prefill", "engine", "message"),
    [
        ([5, 8, 9, 3], EngineModel(40), "for an engine with prefix_caching"),
        ([5, 8, 9], EngineModel(40, prefix_caching=True), "prefixes has 4 leaves"),
        ([4, 8, 9, 3], EngineModel(40, prefix_caching=True), "request 0 shares 4"),
    ],
)
def test_prefixes_of_other_requests_are_refused(prefill, engine, message):
    """By number, by length, or by the engine."""
    with pytest.raises(ValueError, match=message):
        Instance(prefill, [2] * len(prefill), None, None, engine, TWO)


def test_a_cap_on_tokens_is_not_planned_with_prefixes():
    """What a step computes of cached prompts is not known to plans."""
    engine = EngineModel(40, max_batched_tokens=30, prefix_caching=True)
    with pytest.raises(ValueError, match="shared prompts beside a cap on tokens"):
        Instance([5, 8, 9, 3], [2, 2, 2, 2], engine=engine)
