"""Prompts of sessions; and sessions in the step engine as in real vLLM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from online.driver import drive
from online.executor.chain_prompts import ChainPrompts
from online.policy import make_policy
from online.prompt_chains import chains_of
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf import generate
from sortedf.traces import Trace
from tests.online.executor.test_agreement import same_logs

BLOCK = 32

SETTINGS = [
    (("fcfs", "srpt"),
     {"kv_budget": 2048, "max_batched_tokens": 8192, "max_num_seqs": 128}),
    (("svf",), {"kv_budget": 3072, "max_batched_tokens": 96, "max_num_seqs": 12}),
]  # fmt: skip


def conversations(n, seed):
    """Turns of at most 800 tokens in steps; every message and answer is shortened."""
    drawn = generate("conversations", n, seed=seed, rate=0.3, think_s=20)
    prefill, decode = np.zeros((2, n), dtype=np.int64)
    previous = drawn.sessions.previous.copy()
    for i in range(n):
        before = previous[i]
        whole = int(prefill[before] + decode[before]) if before >= 0 else 0
        own = 1 + int(drawn.prefill[i]) % 90
        decode[i] = 1 + int(drawn.decode[i]) % 110
        if whole + own + decode[i] > 800:
            previous[i], whole = -1, 0
        prefill[i] = whole + own
    sessions = type(drawn.sessions)(previous, np.ceil(drawn.sessions.think_s))
    # The ids of a session's first message stay, those of a new one are its own.
    lists, text = [], 10**6
    for i in range(n):
        start = lists[previous[i]] if previous[i] >= 0 else []
        more = int(prefill[i]) // 16 - len(start)
        lists.append([*start, *range(text, text + more)])
        text += more
    ids = type(drawn.prefix_ids).of_lists(lists, 16)
    return Trace(
        prefill, decode, np.floor(drawn.arrival_s), prefix_ids=ids, sessions=sessions
    )


def table_of(trace, *, caching=True):
    table = RequestTable.of_arrays(trace.prefill, trace.decode, trace.arrival_s)
    table.sessions = trace.sessions
    table.chains = chains_of(trace, BLOCK) if caching else None
    return table


@pytest.mark.slow
@pytest.mark.parametrize(("policies", "settings"), SETTINGS)
def test_every_turn_and_its_cached_tokens(real_engine, policies, settings):
    """300 turns; each waits for the one before, and finds its text in the cache."""
    trace = conversations(320, settings["kv_budget"])
    engine, preemptions = None, 0
    for name in policies:
        tables = [table_of(trace) for _ in range(2)]
        if engine is None:
            engine = real_engine(
                tables[0], make_policy(name), prefix_caching=True, max_model_len=1024,
                **settings,
            )  # fmt: skip
        else:
            engine.use(tables[0], make_policy(name))
        real = drive(engine)
        twin = drive(StepEngine(tables[1], engine.rules, make_policy(name)))
        np.testing.assert_array_equal(real.cached_tokens, twin.cached_tokens, name)
        np.testing.assert_array_equal(real.arrival_s, twin.arrival_s, name)
        same_logs(real, twin, name)
        assert real.completed.all()
        later = ~trace.sessions.is_first
        before = trace.sessions.previous[later]
        ended = real.completion_s[before] + trace.sessions.think_s[later]
        np.testing.assert_array_equal(real.arrival_s[later], ended)
        # Not only the prompt before but its answer is found, too.
        more = real.cached_tokens[later] > trace.prefill[before]
        assert more.any()
        preemptions += int(real.preemptions.sum())
    assert preemptions > 0 or policies == ("svf",)
    assert later.sum() > 100


def test_prompts_hold_what_was_said():
    """A turn's prompt is the prompt before, its answer, and new tokens."""
    trace = conversations(40, 1)
    table = table_of(trace)
    prompts = ChainPrompts(table, table.chains)
    written, follows = [], 0
    for i in range(trace.num_requests):
        tokens = prompts.write(i)
        assert len(tokens) == trace.prefill[i]
        assert prompts.write(i) == tokens
        before = int(trace.sessions.previous[i])
        if before >= 0:
            assert tokens[: len(written[before])] == written[before]
            follows += 1
        answer = [5 + i] * int(trace.decode[i])
        prompts.ended(i, tokens, answer)
        written.append([*tokens, *answer])
    assert follows > 10


def test_prompts_without_sessions_share_what_their_ids_share():
    drawn = generate("few-shot", 60, seed=1, per_prefix=20)
    table = table_of(replace(drawn, sessions=None))
    prompts = ChainPrompts(table, table.chains)
    written = [prompts.write(i) for i in range(60)]
    chains = table.chains
    for i in range(1, 60):
        own, other = (
            chains.keys[chains.offset[j] : chains.offset[j + 1]] for j in (i - 1, i)
        )
        shared = min(len(own), len(other))
        same = int(np.cumprod(own[:shared] == other[:shared]).sum())
        end = same * BLOCK
        assert written[i - 1][:end] == written[i][:end]
        assert written[i - 1][: end + BLOCK] != written[i][: end + BLOCK]
