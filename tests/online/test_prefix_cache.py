"""Prefix caching in the step engine, against its slow twin and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.metrics import measure
from online.policy import make_policy
from online.prompt_chains import PromptChains
from online.requests import RequestTable
from online.simulator import simulate
from online.step_engine import StepEngine
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS
from sortedf.traces import Trace
from sortedf.traces.prefix_ids import PrefixIds
from tests.online.naive import Request, compared_steps
from tests.online.naive_cache import NaiveCachingEngine
from tests.online.strategies import Restless, chains_of, rules_for
from tests.strategies import examples

pytestmark = pytest.mark.kernel


def keys_of(prompts, decode, size):
    """What is in each block: all tokens up to its end, or the request's own."""
    return {
        i: [
            tuple(prompt[:end]) if end <= len(prompt) else (i, "own", end)
            for end in range(size, len(prompt) + decode[i] + size, size)
        ]
        for i, prompt in enumerate(prompts)
    }


class Watching(Restless):
    """Notes free blocks, and the requests that hold shared ones, at each decision."""

    def __init__(self, seed):
        super().__init__(seed)
        self.seen: list[tuple[int, set[int]]] = []

    def decide(self, state):
        holders = np.flatnonzero(state.prefixes.leaf >= 0).tolist()
        self.seen.append((state.free_blocks, set(holders)))
        return super().decide(state)


prompts_of_two = st.lists(
    st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=7
)


@examples(200)
@given(st.data(), prompts_of_two, st.integers(0, 2**32))
def test_each_step_is_that_of_the_slow_twin(data, prompts, seed):
    """Equal prompts, second copies, evictions: the same blocks are found and lost."""
    n = len(prompts)
    decode = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    instance = Instance([len(prompt) for prompt in prompts], decode, 100)
    rules = replace(data.draw(rules_for(instance)), prefix_caching=True)
    table = RequestTable.of_instance(instance)
    policy = Watching(seed)
    table.chains = chains_of(prompts, rules.block_size)
    engine = StepEngine(table, rules, policy)
    twin = NaiveCachingEngine(
        rules,
        {i: Request(i, len(prompts[i]), decode[i]) for i in range(n)},
        keys=keys_of(prompts, decode, rules.block_size),
    )
    expected: list[tuple[int, set[int]]] = [(rules.num_blocks, set())]
    for _ in compared_steps(engine, twin, policy.decisions):
        free, holders = policy.seen[-1]
        assert free == expected[-1][0]
        assert holders <= expected[-1][1]
        expected.append((len(twin.free), {i for i in twin.running if i in twin.held}))


@examples(60)
@given(
    prompts_of_two,
    st.sampled_from(["fcfs", "svf", "svf-boost", "svf-blind", "srpt", "las"]),
)
def test_every_policy_finishes_and_keeps_the_books(prompts, policy):
    """Tokens processed and found add up, and nothing is lost."""
    n = len(prompts)
    instance = Instance([len(prompt) for prompt in prompts], [5] * n, 100)
    rules = EngineModel.vllm(24, 2, prefix_caching=True)
    chains = chains_of(prompts, 2)
    log = simulate(instance, policy, rules, chains=chains)
    assert log.completed.all()
    found = measure(log, rules, UNIT_STEPS)
    assert found.cached_tokens == log.cached_tokens.sum()
    assert 0 <= found.hit_rate <= 1


@examples(100)
@given(prompts_of_two, st.sampled_from(["svf", "mc-sf", "sorted-f-online"]))
def test_nothing_is_preempted_with_true_lengths(prompts, policy):
    """Look-ahead counts what is shared once, and still never overflows."""
    n = len(prompts)
    decode = [1 + 3 * (i % 4) for i in range(n)]
    instance = Instance([len(prompt) for prompt in prompts], decode, 100)
    rules = EngineModel.vllm(26, 2, prefix_caching=True)
    chains = chains_of(prompts, 2)
    assert not simulate(instance, policy, rules, chains=chains).preemptions.any()


def test_by_hand():
    """Two prompts with two blocks in common; the second one computes its last block."""
    instance = Instance([10, 10], [3, 3], 100)
    chains = chains_of([[0] * 8 + [1, 2], [0] * 8 + [3, 4]], 4)
    rules = EngineModel.vllm(64, block_size=4, prefix_caching=True)
    log = simulate(instance, "fcfs", rules, chains=chains)
    assert log.cached_tokens.tolist() == [0, 8]
    assert log.steps.prefill_tokens.tolist() == [12, 0, 0]
    assert log.steps.used_blocks.tolist() == [4, 4, 4]
    found = measure(log, rules, UNIT_STEPS, bound="fluid")
    assert (found.cached_tokens, found.hit_rate) == (8, 0.4)
    # None of the bounds holds where prompts share their KV.
    assert found.lower_bound is None
    assert found.bound_method == "none with prefix caching"


def test_the_last_token_is_always_computed():
    """The same prompt of two whole blocks twice: the second block is a second copy."""
    instance = Instance([8, 8], [1, 1], 100)
    chains = chains_of([[7] * 8, [7] * 8], 4)
    rules = EngineModel.vllm(64, block_size=4, prefix_caching=True)
    log = simulate(instance, "fcfs", rules, chains=chains)
    assert log.cached_tokens.tolist() == [0, 4]
    assert log.steps.used_blocks.tolist() == [3]


def test_a_preempted_request_finds_its_own_blocks_though_nothing_is_shared():
    """It computes only what was taken from it, where it computed all without."""
    instance = Instance([8, 8], [20, 20], 100)
    runs = []
    for caching in (False, True):
        rules = EngineModel.vllm(48, block_size=4, prefix_caching=caching)
        runs.append(simulate(instance, "fcfs", rules))
    plain, cached = runs
    assert plain.preemptions.tolist() == cached.preemptions.tolist() == [0, 1]
    assert cached.cached_tokens[0] == 0
    assert cached.cached_tokens[1] > 0
    assert cached.steps.prefill_tokens.sum() < plain.steps.prefill_tokens.sum()


def test_chains_of_another_block_size_or_number_are_refused():
    instance = Instance([8, 8], [1, 1], 100)
    rules = EngineModel.vllm(64, block_size=4, prefix_caching=True)
    for chains in (
        PromptChains.nothing_shared(2, 8), PromptChains.nothing_shared(3, 4)
    ):  # fmt: skip
        table = RequestTable.of_instance(instance)
        table.chains = chains
        with pytest.raises(ValueError, match="but must be of 2 in blocks of 4"):
            StepEngine(table, rules, make_policy("fcfs"))


@given(prompts_of_two, st.sampled_from([1, 2, 3, 4]), st.sampled_from([2, 3, 4, 6]))
def test_ids_of_longer_blocks_say_the_same_as_the_tokens(prompts, size, per_id):
    """Blocks that agree by the trace's ids agree by their tokens, and the other way.

    As far as an id tells: of tokens that agree only in part of a block it says nothing.
    """
    known: dict[tuple[int, ...], int] = {}
    hash_ids = [
        [
            known.setdefault(tuple(prompt[begin : begin + per_id]), len(known))
            for begin in range(0, len(prompt), per_id)
        ]
        for prompt in prompts
    ]
    lengths = np.array([len(prompt) for prompt in prompts])
    chains = PromptChains.of_hash_ids(
        PrefixIds.of_lists(hash_ids, per_id), lengths, size
    )
    for i, a in enumerate(prompts):
        for j, b in enumerate(prompts):
            for block in range(min(len(a), len(b)) // size):
                end = (block + 1) * size
                until = -(-end // per_id) * per_id  # the end of the trace's block
                same = a[:until] == b[:until]
                mine = chains.keys[chains.offset[i] + block]
                theirs = chains.keys[chains.offset[j] + block]
                assert (mine == theirs) == same


def test_a_trace_says_what_its_prompts_share():
    """Two prompts with two of three ids in common, of 8 tokens each."""
    ids = PrefixIds.of_lists([[1, 2, 3], [1, 2, 4]], 8)
    trace = Trace([20, 20], [2, 2], prefix_ids=ids)
    log = simulate(trace, "fcfs", EngineModel.vllm(64, 4, prefix_caching=True))
    assert log.cached_tokens.tolist() == [0, 16]
    plain = simulate(trace, "fcfs", EngineModel.vllm(64, 4))
    assert not plain.cached_tokens.any()
