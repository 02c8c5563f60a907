"""Look-ahead: equal to simulating all coming steps, and nothing is ever preempted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from online import step_kernels as k
from online.policies.parts.look_ahead import LookAhead
from online.requests import RequestTable
from online.state import State
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS
from tests.online.policies.engine_runs import cases, run
from tests.online.policies.states import World
from tests.strategies import examples

pytestmark = pytest.mark.kernel

KNOWS_LENGTHS = [
    ("mc-sf", {}),
    ("total-size", {}),
    ("svf", {}),
    ("svf", {"backfill": 3}),
    ("svf-aged", {"patience": 2.0}),
    ("fcfs", {"admission": "look-ahead"}),
    ("hrrn", {"admission": "look-ahead", "backfill": 1}),
    ("sorted-f-online", {}),
    ("sorted-f-amin", {}),
]


@pytest.mark.parametrize(("name", "options"), KNOWS_LENGTHS)
@given(cases(max_requests=9, max_length=10))
@examples(40)
def test_nothing_is_preempted_with_true_lengths(name, options, case):
    """At any block size, token budget and cap, prompts cut into chunks or not."""
    instance, rules = case
    done = run(instance, rules, name, **options)
    assert done.preemptions == done.evictions == 0


@pytest.mark.parametrize("name", ["svf", "mc-sf", "sorted-f-online", "sorted-f-amin"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_preempted_where_prompts_take_many_steps(name, seed):
    """Hundreds of requests, long prompts in small steps, a full cache."""
    rng = np.random.default_rng(seed)
    n = 250
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(100, 400, n), rng.integers(1, 30, n))
    decode = np.where(long, rng.integers(10, 60, n), rng.integers(1, 120, n))
    instance = Instance(prefill, decode, 4096)
    rules = EngineModel.vllm(4096, 32, max_num_seqs=96, max_batched_tokens=96)
    assert run(instance, rules, name).preemptions == 0


@pytest.mark.parametrize("tokens", [None, 64, 7])
@pytest.mark.parametrize("size", [1, 16, 32])
def test_the_fifth_of_five_long_requests_waits(size, tokens):
    """Five equal ones when 4.4 fit: the engine would start all and preempt later."""
    s, o = 60, 100
    budget = int(4.4 * (s + o))
    instance = Instance([s] * 5, [o] * 5, budget)
    rules = EngineModel.vllm(budget, block_size=size, max_batched_tokens=tokens)
    done = run(instance, rules, "svf")
    assert done.preemptions == 0
    first_end = done.log.completion_step[:4].min()
    assert done.log.start_step[4] > first_end - o
    if tokens != 7:  # where prompts take long they do not grow together
        greedy = run(instance, rules, "svf", admission="engine")
        assert greedy.preemptions > 0


@st.composite
def moments(draw: st.DrawFn) -> tuple[State, np.ndarray, list[int], int]:
    """Requests that decode, then such in prefill, and waiting ones; their lengths."""
    size = draw(st.sampled_from([1, 2, 3, 5]))
    extra = draw(st.booleans())
    n = draw(st.integers(1, 8))
    length = st.integers(1, 10)
    prefill = [draw(length) for _ in range(n)]
    decode = [draw(length) for _ in range(n)]
    now = [draw(st.sampled_from(["waits", "decodes", "prefill"])) for _ in range(n)]
    decoding = [i for i in range(n) if now[i] == "decodes" and decode[i] > 1]
    in_prefill = [i for i in range(n) if now[i] == "prefill" and prefill[i] > 1]
    running = decoding + in_prefill
    waiting = [i for i in range(n) if i not in running]
    table = RequestTable.of_arrays(
        np.array(prefill), np.array(decode), np.zeros(n), predicted=decode
    )
    output_tokens, computed = table.ints[k.OUTPUT_TOKENS], table.ints[k.COMPUTED]
    for i in decoding:
        output_tokens[i] = draw(st.integers(1, decode[i] - 1))
        computed[i] = prefill[i] + output_tokens[i] - 1
    for i in in_prefill:
        computed[i] = draw(st.integers(1, prefill[i] - 1))
    held = sum(-(-(prefill[i] + output_tokens[i] + extra) // size) for i in running)
    longest = max(s + o for s, o in zip(prefill, decode, strict=True))
    least = max(int(held), -(-(longest + extra) // size))
    blocks = draw(st.integers(least, least + 20))
    chunked = draw(st.booleans())
    most = max(len(running), 1) + draw(st.integers(0, 3))
    fewest = most if chunked else max(most, longest)
    rules = EngineModel.vllm(
        blocks * size,
        block_size=size,
        max_num_seqs=draw(st.sampled_from([None, most])),
        max_batched_tokens=draw(st.none() | st.integers(fewest, fewest + 12)),
        long_prefill_token_threshold=draw(st.sampled_from([0, 0, 1, 2, 3, 6])),
        chunked_prefill=chunked,
        counts_new_token=extra,
    )
    state = State(
        5, 5.0, np.array(running, dtype=np.int64), table.view, blocks - held, waiting,
        [], False, rules, UNIT_STEPS, dict.fromkeys(waiting),
    )  # fmt: skip
    return (
        state,
        np.array(decode),
        draw(st.permutations(waiting)),
        draw(st.integers(0, 3)),
    )


@dataclass
class Body:
    """What a request has by now."""

    prefill: int
    decode: int
    output_tokens: int
    computed: int


class Coming:
    """The coming steps, one after the other: the slow twin of the forecast."""

    def __init__(self, state: State, decode: np.ndarray) -> None:
        self.rules = state.rules
        self.bodies = [body(state, decode, i) for i in state.running.tolist()]

    def fits(self) -> bool:
        """Whether the step's blocks suffice, whole prompts held from the start."""
        rules = self.rules
        tokens = [b.prefill + b.output_tokens + rules.extra_slots for b in self.bodies]
        return sum(rules.blocks(t) for t in tokens) <= rules.num_blocks

    def takes(self, one: Body, left: int) -> int:
        rest = one.prefill + one.output_tokens - one.computed
        return min(rest, self.rules.long_prefill_token_threshold or rest, left)

    def unused(self) -> int:
        """Tokens of the next step that the requests leave."""
        left = self.rules.tokens_cap
        for one in self.bodies:
            left -= self.takes(one, left)
        return left

    def start(self, one: Body) -> bool:
        """Start one more if the next step has tokens for it."""
        left, wanted = self.unused(), self.takes(one, self.rules.tokens_cap)
        if (
            len(self.bodies) >= self.rules.seqs_cap
            or left == 0
            or (wanted > left and not self.rules.chunked_prefill)
        ):
            return False
        self.bodies.append(one)
        return True

    def step(self) -> None:
        left = self.rules.tokens_cap
        for one in self.bodies:
            new = self.takes(one, left)
            left -= new
            one.computed += new
            one.output_tokens += one.computed == one.prefill + one.output_tokens
        self.bodies = [one for one in self.bodies if one.output_tokens < one.decode]


def body(state: State, decode: np.ndarray, i: int) -> Body:
    r = state.requests
    return Body(
        int(r.prefill[i]), int(decode[i]), int(r.output_tokens[i]), int(r.computed[i])
    )


def never_overflows(
    state: State, decode: np.ndarray, started: list[int], later: int = 0
) -> bool:
    """Whether all who run get through every coming step.

    Also those started now, the last of them `later` steps after the others.
    """
    coming = Coming(state, decode)
    bodies = [body(state, decode, i) for i in started]
    for at, one in enumerate(bodies, 1):
        for _ in range(later if at == len(bodies) else 0):
            if not coming.fits():
                return False
            coming.step()
        if not coming.start(one):
            return False
    while coming.bodies:
        if not coming.fits():
            return False
        coming.step()
    return True


@given(moments())
@examples(400)
def test_equals_simulating_all_coming_steps(moment):
    """The forecast is exact, however prompts are cut: neither more nor fewer start."""
    state, decode, waiting, backfill = moment
    assume(never_overflows(state, decode, []))
    expected: list[int] = []
    passed = 0
    for i in waiting:
        if passed > backfill:
            break
        if never_overflows(state, decode, [*expected, i]):
            expected.append(i)
        else:
            passed += 1
    look = LookAhead(backfill)
    assert look.admit(state, waiting, state.requests.predicted) == expected


@given(moments())
@examples(300)
def test_who_must_wait_could_not_have_started_sooner(moment):
    """The steps to wait that a forecast gives are never too many."""
    state, decode, waiting, _ = moment
    assume(never_overflows(state, decode, []))
    look = LookAhead(0)
    started = look.admit(state, waiting, state.requests.predicted)
    if len(started) == len(waiting):
        return
    i = waiting[len(started)]
    # If no other request starts, in which coming step does it fit first?
    later = 0
    while not never_overflows(state, decode, [*started, i], later):
        later += 1
    assert look.not_before[i] <= state.step + max(later, 1)


def test_a_forecast_holds_until_it_is_forgotten():
    """Also while others start; a request that was never looked at may start at once."""
    world = World([20, 10, 10, 10], [9, 5, 5, 5], EngineModel.vllm(31))
    world.arrive(range(4))
    world.start([0])
    look = LookAhead()
    lengths = world.table.view.predicted
    assert look.admit(world.look(), [2, 3], lengths) == []
    until = look.wait_until([2])
    assert until > 1
    assert look.wait_until([1, 2]) == 0
    assert look.wait_until([]) == math.inf
    world.rules = EngineModel.vllm(60)
    look = LookAhead()
    look.not_before[3] = 7
    assert look.admit(world.look(), [1], lengths) == [1]
    assert look.wait_until([3]) == 7
    assert look.admit(world.look(free_blocks=0), [], lengths) == []
    look.forget([1, 3])
    assert look.wait_until([3]) == 0
    look.not_before[2] = 9
    look.start_over()
    assert look.wait_until([2]) == 0


def test_a_window_below_nothing_is_refused():
    with pytest.raises(ValueError, match="backfill = -1 but must be at least 0"):
        LookAhead(-1)
