"""Shared prefixes in decisions: equal to holding the blocks one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from online import step_kernels as k
from online.policies.parts.look_ahead import LookAhead
from online.policies.parts.preempting import Preempting
from online.prefix_forest import PrefixForest
from online.requests import RequestTable
from online.state import State
from sortedf.engine_model import EngineModel
from sortedf.step_time import UNIT_STEPS
from tests.online.policies.parts.test_preempting import Given
from tests.online.policies.states import World
from tests.strategies import examples

pytestmark = pytest.mark.kernel


class Cache:
    """Who holds which blocks: a set of names for each request that runs.

    A block is named by the tokens up to its end where it can be shared, and by its
    request where it cannot: an answer's, and second copies.
    """

    def __init__(self, size, prompts):
        self.size = size
        self.prompts = prompts

    def chain(self, i):
        prompt = self.prompts[i]
        return [
            tuple(prompt[: end * self.size])
            for end in range(1, len(prompt) // self.size + 1)
        ]

    def found(self, i, there):
        """First blocks of a prompt that are there; its last token is computed."""
        chain = self.chain(i)[: (len(self.prompts[i]) - 1) // self.size]
        count = 0
        while count < len(chain) and chain[count] in there:
            count += 1
        return count

    def names(self, i, found, there):
        """Blocks of a prompt that may be shared, once it has begun to run."""
        chain = self.chain(i)
        return chain[:found] + [
            (i, name) if name in there else name for name in chain[found:]
        ]


def usage(cache, rules, held, tokens):
    """Blocks in use: of prompts by name, and of what comes after them."""
    names = {name for i in tokens for name in held[i]}
    more = sum(rules.blocks(tokens[i] + rules.extra_slots) - len(held[i])
               for i in tokens)  # fmt: skip
    return len(names) + more


def never_overflows(cache, rules, decode, output_tokens, held):
    """Whether those that `made` names get through every coming step."""
    if len(output_tokens) > rules.seqs_cap:
        return False
    output_tokens = dict(output_tokens)
    while output_tokens:
        tokens = {i: len(cache.prompts[i]) + j for i, j in output_tokens.items()}
        if usage(cache, rules, held, tokens) > rules.num_blocks:
            return False
        output_tokens = {
            i: j + 1 for i, j in output_tokens.items() if j + 1 < decode[i]
        }
    return True


@st.composite
def moments(draw):
    """Prompts from a small tree; some run, others wait."""
    size = draw(st.sampled_from([1, 2, 3]))
    n = draw(st.integers(1, 8))
    tree = [draw(st.lists(st.integers(0, 1), min_size=1, max_size=14))]
    prompts = []
    for _ in range(n):
        start = draw(st.sampled_from(tree))
        cut = draw(st.integers(0, len(start)))
        tail = draw(st.lists(st.integers(0, 1), max_size=4)) or [draw(st.just(7))]
        prompt = start[:cut] + tail
        tree.append(prompt)
        prompts.append(prompt)
    decode = [draw(st.integers(1, 10)) for _ in range(n)]
    running = [i for i in range(n) if decode[i] > 1 and draw(st.booleans())]
    output_tokens = {i: draw(st.integers(1, decode[i] - 1)) for i in running}
    return (
        Cache(size, prompts), decode, output_tokens,
        draw(st.permutations([i for i in range(n) if i not in output_tokens])),
        draw(st.integers(0, 3)), draw(st.integers(0, 12)), draw(st.booleans()),
        draw(st.none() | st.integers(1, 8)),
    )  # fmt: skip


def begun(cache, output_tokens):
    """Let those run, one after the other; return the forest and who holds what."""
    there: set[object] = set()
    held, forest = {}, None

    def num_cached(i, most):
        chain, count = cache.chain(i), 0
        while count < most and chain[count] in there:
            count += 1
        return count

    forest = PrefixForest(cache.chain, num_cached, cache.size)
    for i in output_tokens:
        found = cache.found(i, there)
        held[i] = cache.names(i, found, there)
        there |= set(held[i])
        forest.start(i, cache.chain(i), found)
    return forest, held, there


@given(moments())
@examples(400)
def test_equals_holding_the_blocks_one_by_one(moment):
    """Neither more nor fewer start than there is room for, with what is shared."""
    cache, decode, output_tokens, waiting, backfill, more, extra, seqs = moment
    n = len(decode)
    prefill = np.array([len(prompt) for prompt in cache.prompts])
    forest, held, there = begun(cache, output_tokens)
    longest = int((prefill + decode).max())
    rules = EngineModel.vllm(1, counts_new_token=extra)
    least = -(-(longest + 1) // cache.size)
    rules = EngineModel.vllm(
        (least + more) * cache.size, cache.size, counts_new_token=extra,
        max_num_seqs=None if seqs is None else max(seqs, len(output_tokens), 1),
    )  # fmt: skip
    assume(never_overflows(cache, rules, decode, output_tokens, held))
    table = RequestTable.of_arrays(prefill, np.array(decode), np.zeros(n))
    for i, j in output_tokens.items():
        table.ints[k.OUTPUT_TOKENS, i] = j
        table.ints[k.COMPUTED, i] = prefill[i] + j - 1
    state = State(
        5, 5.0, np.array(list(output_tokens), dtype=np.int64), table.view, 0,
        waiting, [], False, rules, UNIT_STEPS, dict.fromkeys(waiting), prefixes=forest,
    )  # fmt: skip
    expected: list[int] = []
    ran, passed = dict(output_tokens), 0
    for i in waiting:
        if passed > backfill:
            break
        own = cache.names(i, cache.found(i, there), there)
        if never_overflows(cache, rules, decode, {**ran, i: 0}, {**held, i: own}):
            expected.append(i)
            ran[i], held[i] = 0, own
            there = there | set(own)
        else:
            passed += 1
    look = LookAhead(backfill)
    assert look.admit(state, waiting, state.requests.predicted) == expected


@given(moments(), st.data())
@examples(300)
def test_an_eviction_frees_what_no_other_holds(moment, data):
    """Who starts and who goes for it, when prompts that run or wait begin alike."""
    drawn, _, output_tokens, _, _, more, extra, _ = moment
    size = drawn.size + 1
    # The last block is not whole and so no other's: there are no copies.
    prompts = [p if len(p) % size else [*p, 5] for p in drawn.prompts]
    cache, n = Cache(size, prompts), len(prompts)
    forest, held, _ = begun(cache, output_tokens)
    prefill = [len(prompt) for prompt in cache.prompts]
    score = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    tokens = {i: prefill[i] + output_tokens.get(i, 0) for i in range(n)}
    held |= {i: cache.chain(i) for i in range(n)}
    rules = EngineModel.vllm(1, cache.size, counts_new_token=extra)
    room = usage(cache, rules, held, {i: tokens[i] for i in output_tokens}) + more % 6
    rules = EngineModel.vllm(
        max(room, 1) * cache.size, cache.size, counts_new_token=extra
    )
    world = World(prefill, [99] * n, rules)
    world.arrive(range(n))
    world.start(output_tokens)
    world.table.ints[k.OUTPUT_TOKENS, list(output_tokens)] = list(
        output_tokens.values()
    )
    computed = {i: tokens[i] - 1 for i in output_tokens}
    world.table.ints[k.COMPUTED, list(output_tokens)] = list(computed.values())
    free = rules.num_blocks - usage(cache, rules, held, computed)
    decision = Preempting(Given(score, [False] * n)).decide(
        world.look(free_blocks=free, prefixes=forest)
    )

    def order(i):
        return score[i], world.table.arrival_s[i], i

    stay, started = sorted(output_tokens, key=order), []
    for new in sorted(world.waiting, key=order):
        fewer = list(stay)
        while True:
            run = [*fewer, *started, new]
            if usage(cache, rules, held, {i: tokens[i] for i in run}) <= (
                rules.num_blocks
            ):
                break
            if not fewer or score[fewer[-1]] <= score[new]:
                run = []
                break
            fewer.pop()
        if not run:
            break
        stay, started = fewer, [*started, new]
    assert list(decision.start) == started
    assert sorted(decision.evict) == sorted(set(output_tokens) - set(stay))
