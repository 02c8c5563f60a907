"""Which requests start and which are evicted for them: the kernel against its twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online import step_kernels as k
from online.policies.parts import preempting_kernels
from online.policies.parts.preempting import FIRST, Preempting
from online.state import Decision
from sortedf.engine_model import EngineModel
from tests.online.policies import naive_preempting as naive
from tests.online.policies.states import World
from tests.strategies import examples

pytestmark = pytest.mark.kernel


class Given:
    """Scores and protection as a test says, by id."""

    def __init__(self, score: list[int], guarded: list[bool]) -> None:
        self.given, self._guarded = np.array(score, float), np.array(guarded)
        self.updates = 0

    def update(self, state):
        self.updates += 1
        return False

    def score(self, requests, ids):
        return self.given[ids]

    def protected(self, requests, ids):
        return self._guarded[ids]

    def same_until(self, state):
        return state.step


rules = st.builds(
    EngineModel,
    st.integers(20, 120),
    st.sampled_from([1, 4, 16]),
    st.one_of(st.none(), st.integers(4, 12)),
    st.sampled_from([None, 20, 100]),
    chunked_prefill=st.booleans(),
    watermark=st.sampled_from([0.0, 0.1]),
    counts_new_token=st.booleans(),
)


@pytest.mark.parametrize(
    "name",
    [
        *("PREFILL", "COMPUTED", "OUTPUT_TOKENS"),
        *("BLOCK_SIZE", "MAX_SEQS", "MAX_TOKENS_STEP"),
        *("CHUNKED", "WATERMARK", "EXTRA"),
    ],
)
def test_entries_have_the_place_that_the_step_kernels_give_them(name):
    """A kernel must have its constants in its own file."""
    assert getattr(preempting_kernels, name) == getattr(k, name)


@examples(400)
@given(rules, st.data())
def test_the_kernel_chooses_as_its_twin_does(rules, data):
    n = data.draw(st.integers(1, 4 * FIRST), label="requests")

    def each(strategy, label):
        return data.draw(st.lists(strategy, min_size=n, max_size=n), label=label)

    prefill = each(st.integers(1, 12), "prefill")
    output_tokens = each(st.integers(0, 6), "output_tokens")
    score = each(st.integers(0, 5), "score")
    guarded = each(st.booleans(), "guarded")
    runs = each(st.booleans(), "runs")
    part = each(st.sampled_from([0, 1, 9, 18, 18, 18]), "computed")
    arrival = each(st.sampled_from([0.0, 0.5, 1.5]), "arrival")
    world = World(prefill, [99] * n, rules)
    world.table.arrival_s[:n] = arrival
    world.table.ints[k.OUTPUT_TOKENS, :n] = output_tokens
    world.arrive(range(n))
    world.start([i for i in range(n) if runs[i]])
    computed = [
        min(part[i], prefill[i] + output_tokens[i]) if runs[i] else 0 for i in range(n)
    ]
    world.table.ints[k.COMPUTED, :n] = computed
    state = world.look(free_blocks=data.draw(st.integers(0, 15), label="free"))
    hysteresis = data.draw(st.sampled_from([0.0, 1.0]), label="hysteresis")
    headroom = data.draw(st.sampled_from([0, 5]), label="headroom")
    policy = Preempting(Given(score, guarded), hysteresis=hysteresis, headroom=headroom)
    decision = policy.decide(state)

    requests = [
        naive.Candidate(
            i,
            prefill[i] + output_tokens[i],
            computed[i],
            arrival[i],
            score[i],
            guarded[i],
        )
        for i in range(n)
    ]
    running = [requests[i] for i in state.running.tolist()]
    waiting = [requests[i] for i in world.waiting]
    waiting.sort(key=lambda r: (r.score, r.arrival_s, r.id))
    start, evict, order = naive.choose(
        running, waiting, rules, state.free_blocks, hysteresis, headroom
    )
    assert list(decision.start) == start
    assert sorted(decision.evict) == sorted(evict)
    gone = set(evict)
    now = [i for i in state.running.tolist() if i not in gone]
    assert (now if decision.order is None else decision.order) == order


@pytest.fixture
def world():
    """Three requests in blocks of four tokens, of which a test says which run."""
    world = World([3] * 3, [99] * 3, EngineModel.vllm(400, 4, max_num_seqs=2))
    world.arrive(range(3))
    return world


def running(world, ids):
    world.start(ids)
    world.table.ints[k.COMPUTED, ids] = 3
    world.table.ints[k.OUTPUT_TOKENS, ids] = 1


@pytest.mark.parametrize(("ids", "blocks"), [([0], 7), ([0, 1], 3)])
def test_without_waiting_requests_only_a_preemption_makes_the_order_matter(ids, blocks):
    """Seven free blocks are seven for one request, and three for each of two."""
    world = World([3] * 3, [99] * 3, EngineModel.vllm(400, 4))
    world.arrive(ids)
    running(world, ids)
    world.step = 10
    decision = Preempting(Given([1, 1, 1], [False] * 3)).decide(
        world.look(free_blocks=7)
    )
    assert decision == Decision(quiet_until=10 + blocks * 4)


def test_with_waiting_requests_the_scores_say_how_long_an_order_is_valid(world):
    """Here they may change in every step, so that no decision is kept."""
    running(world, [0, 1])
    scorer = Given([1, 1, 1], [False] * 3)
    world.step = 10
    assert Preempting(scorer).decide(world.look()) == Decision(quiet_until=10)


def test_a_decision_that_stands_is_not_made_again(world):
    """By the step, whatever the clock says, and only in quiet steps."""
    running(world, [0, 1])
    scorer = Given([1, 1, 1], [False] * 3)
    scorer.same_until = lambda state: 5
    policy = Preempting(scorer)
    first = policy.decide(world.look(quiet=True, now_s=1e6))
    world.step = 4
    assert policy.decide(world.look(quiet=True, now_s=1e6 + 4)) is first
    assert scorer.updates == 1
    policy.decide(world.look(quiet=False))
    assert scorer.updates == 2
    world.step = 5
    policy.decide(world.look(quiet=True))
    assert scorer.updates == 3


def test_the_worst_goes_and_the_others_keep_their_order(world):
    """An eviction alone is no new order."""
    running(world, [0, 1])
    decision = Preempting(Given([1, 3, 2], [False] * 3)).decide(world.look())
    assert (list(decision.start), list(decision.evict)) == ([2], [1])
    assert decision.order is None


def test_waiting_requests_are_sorted_again_once_their_scores_are_new(world):
    """Only the scorer knows when that is."""
    running(world, [0])
    scorer = Given([0, 1, 2], [False] * 3)
    policy = Preempting(scorer)
    assert list(policy.decide(world.look()).start) == [1]
    scorer.given[:] = [0, 2, 1]
    scorer.update = lambda state: True
    assert list(policy.decide(world.look()).start) == [2]
