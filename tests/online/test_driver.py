"""The driver: turns of sessions arrive when the turns before them have ended."""

from __future__ import annotations

import numpy as np
import pytest

from online.arrivals import arrive
from online.policy import POLICIES
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.generator import generate
from sortedf.step_time import PRESETS
from sortedf.traces import Trace
from sortedf.traces.prefix_ids import PrefixIds
from sortedf.traces.sessions import Sessions

RULES = EngineModel.vllm(
    12_288, block_size=16, max_num_seqs=64, max_batched_tokens=512, prefix_caching=True
)
CHATS = generate("conversations", 60, seed=2, rate=3.0, think_s=2.0)
BY_NAME = sorted(name for name, kind in POLICIES.items() if not kind.needs_plan)


@pytest.mark.parametrize("policy", BY_NAME)
def test_a_turn_arrives_after_the_one_before(policy):
    """By every policy; and first turns when the trace says."""
    log = simulate(CHATS, policy, RULES, step_time=PRESETS["a100-llama-3-8b"])
    assert log.completed.all()
    sessions = CHATS.sessions
    first, before = sessions.is_first, np.maximum(sessions.previous, 0)
    ended = log.completion_s[before] + sessions.think_s
    arrival_s = np.where(first, CHATS.arrival_s, ended)
    np.testing.assert_array_equal(log.arrival_s, arrival_s)
    assert log.cached_tokens.sum() > 0


def test_a_turn_finds_prompt_and_answer_of_the_one_before():
    """Prompt 32 and answer 33, of which the last token is never computed: 4 blocks."""
    ids = PrefixIds.of_lists([[0, 1], [0, 1, 2, 3, 4]], 16)
    sessions = Sessions([-1, 0], [0.0, 5.0])
    trace = Trace([32, 80], [33, 1], prefix_ids=ids, sessions=sessions)
    log = simulate(trace, "fcfs", RULES)
    assert log.arrival_s.tolist() == [0, 33 + 5]
    assert log.cached_tokens.tolist() == [0, 64]
    without = Trace([32, 80], [33, 1], prefix_ids=ids)
    assert simulate(without, "fcfs", RULES).cached_tokens.tolist() == [0, 32]


def test_a_turn_that_can_never_run_ends_when_it_arrives():
    """The turn after it still arrives, after both think times."""
    sessions = Sessions([-1, 0, 1], [0.0, 5.0, 7.0])
    trace = Trace([8, 99_999, 8], [2, 2, 2], sessions=sessions)
    log = simulate(trace, "fcfs", RULES, drop_oversize=True)
    assert list(log.refused) == [1]
    assert log.arrival_s.tolist() == [0, 7, 14]


def test_only_arrivals_of_sessions_keep_them():
    """All others are times of their own."""
    assert arrive(CHATS, "sessions", rate=2.0).sessions is not None
    assert arrive(CHATS, "poisson", rate=2.0).sessions is None
    with pytest.raises(ValueError, match="no arrival times of later turns"):
        arrive(CHATS, "trace")
