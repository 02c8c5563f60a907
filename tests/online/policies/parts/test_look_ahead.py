"""Look-ahead: equal to simulating all coming steps, and nothing is ever preempted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from online import step_kernels as k
from online.policies.parts.look_ahead import LookAhead
from online.requests import RequestTable
from online.state import State
from sortedf import Instance
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS
from tests.online.policies.engine_runs import cases, run

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
@settings(max_examples=40)
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
    """Some requests that decode, others that wait, and the longest lengths told."""
    size = draw(st.sampled_from([1, 2, 3, 5]))
    extra = draw(st.booleans())
    n = draw(st.integers(1, 8))
    length = st.integers(1, 10)
    prefill = [draw(length) for _ in range(n)]
    decode = [draw(length) for _ in range(n)]
    running = [i for i in range(n) if decode[i] > 1 and draw(st.booleans())]
    waiting = [i for i in range(n) if i not in running]
    made = [
        draw(st.integers(1, decode[i] - 1)) if i in running else 0 for i in range(n)
    ]
    held = sum(-(-(prefill[i] + made[i] - 1 + extra) // size) for i in running)
    longest = max(s + o for s, o in zip(prefill, decode, strict=True))
    least = max(held, -(-(longest + extra) // size))
    blocks = draw(st.integers(least, least + 20))
    table = RequestTable.of_arrays(
        np.array(prefill), np.array(decode), np.zeros(n), predicted=decode
    )
    table.ints[k.OUTPUT_TOKENS, :n] = made
    for i in running:
        table.ints[k.COMPUTED, i] = prefill[i] + made[i] - 1
    rules = EngineModel.vllm(
        blocks * size,
        block_size=size,
        max_num_seqs=draw(st.none() | st.integers(max(len(running), 1), 8)),
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


def never_overflows(state: State, decode: np.ndarray, started: list[int]) -> bool:
    """Whether all who run, and those started now, get through every coming step."""
    rules, requests = state.rules, state.requests
    here = [*state.running.tolist(), *started]
    made = {i: int(requests.output_tokens[i]) for i in here}
    if len(here) > rules.seqs_cap:
        return False
    while here:
        tokens = [int(requests.prefill[i]) + made[i] + rules.extra_slots for i in here]
        if sum(rules.blocks(t) for t in tokens) > rules.num_blocks:
            return False
        for i in here:
            made[i] += 1
        here = [i for i in here if made[i] < decode[i]]
    return True


@given(moments())
@settings(max_examples=300)
def test_equals_simulating_all_coming_steps(moment):
    """Without a cap on tokens the forecast is exact: neither more nor fewer start."""
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
@settings(max_examples=200)
def test_who_must_wait_could_not_have_started_sooner(moment):
    """The steps to wait that a forecast gives are never too many."""
    state, decode, waiting, _ = moment
    assume(never_overflows(state, decode, []))
    look = LookAhead(0)
    started = look.admit(state, waiting, state.requests.predicted)
    if len(started) == len(waiting):
        return
    i = waiting[len(started)]
    # If nobody else starts, in which coming step does it fit first?
    ran = [*state.running.tolist(), *started]
    made = {j: int(state.requests.output_tokens[j]) for j in ran}
    later = 0
    while True:
        here = [j for j in ran if made[j] < decode[j]]
        table = RequestTable.of_arrays(
            state.requests.prefill[: len(decode)], decode, np.zeros(len(decode))
        )
        for j in here:
            table.ints[k.OUTPUT_TOKENS, j] = made[j]
        then = State(
            state.step + later, 0.0, np.array(here, dtype=np.int64), table.view, 0, [],
            [], False, state.rules, UNIT_STEPS, {},
        )  # fmt: skip
        if never_overflows(then, decode, [i]):
            break
        for j in here:
            made[j] += 1
        later += 1
    assert look.not_before[i] <= state.step + max(later, 1)
