"""Conversations: sessions of turns whose prompts grow by what was said before.

The prompt of a turn is the whole conversation so far, with the model's answers, and a
new message. Messages and answers have the lengths of chats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sortedf.generator.length_draws import draw_pairs, lengths_at
from sortedf.generator.quantiles import CHAT
from sortedf.generator.shared_prompts import SYSTEM_PROMPT, TOKENS_PER_ID
from sortedf.traces.prefix_ids import PrefixIds
from sortedf.traces.sessions import FIRST_TURN, Sessions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

CONVERSATIONS = "conversations"
"""Name of the kind."""

TURNS = 4.0
"""Mean number of turns of a conversation that nothing else ends."""

THINK_S = 30.0
"""Mean seconds between an answer and the next message."""

THINK_SIGMA = 1.0
"""Standard deviation of the logarithm of think times."""

LONGEST = 8192
"""Tokens of prompt and answer; a conversation ends before it gets longer."""

SYSTEM_PROMPTS = 4
"""Number of system prompts, one of which begins each conversation."""


def draw_conversations(
    n: int, turns: float, think_s: float, rng: np.random.Generator
) -> tuple[Ints, Ints, PrefixIds, Sessions]:
    """Draw `n` turns, session by session.

    The number of turns of a session is geometric with mean `turns`, think times are
    lognormal with mean `think_s`. The last session may be cut.

    Returns
    -------
    prefill, decode : int64 arrays, shape (n,)
    prefix_ids : PrefixIds
    sessions : Sessions
    """
    message, answer = draw_pairs(n, CHAT, rng)
    ends = rng.random(n) < 1 / turns
    mean_log = math.log(think_s) - THINK_SIGMA**2 / 2 if think_s else -math.inf
    think = np.exp(mean_log + THINK_SIGMA * rng.standard_normal(n))
    rules = lengths_at(SYSTEM_PROMPT, rng.random(SYSTEM_PROMPTS))
    kind = rng.integers(0, SYSTEM_PROMPTS, n)
    # Ids of the system prompts come first, then those of each session's text.
    begin = np.concatenate([[0], np.cumsum(rules // TOKENS_PER_ID)])
    unused = int(begin[-1])
    prefill = np.empty(n, dtype=np.int64)
    previous = np.full(n, FIRST_TURN, dtype=np.int64)
    lists: list[Ints] = []
    session, done = _opening(rules, begin, 0), 0  # ids, and tokens of the text so far
    for i in range(n):
        new, said = int(message[i]), int(answer[i])
        follows = i > 0 and not ends[i - 1] and done + new + said <= LONGEST
        if follows:
            previous[i] = i - 1
        else:
            session = _opening(rules, begin, kind[i])
            done = int(rules[kind[i]])
        prefill[i] = done + new
        done += new + said
        more = max(int(prefill[i]) // TOKENS_PER_ID - len(session), 0)
        session = np.concatenate([session, np.arange(unused, unused + more)])
        unused += more
        lists.append(session)
    think[previous == FIRST_TURN] = 0.0
    ids = PrefixIds.of_lists(lists, TOKENS_PER_ID)
    return prefill, answer, ids, Sessions(previous, think)


def _opening(rules: Ints, begin: Ints, kind: int) -> Ints:
    """Ids of the whole blocks of a system prompt."""
    return np.asarray(begin[kind] + np.arange(rules[kind] // TOKENS_PER_ID))
