"""Kinds of generated traces whose prompts share prefixes.

Each request has a prefix that it shares with others, and a part of its own behind it.
Lengths are drawn from the populations of `sortedf.generator.quantiles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.generator.length_draws import draw_mixture, lengths_at
from sortedf.generator.quantiles import (
    ARTICLE,
    CHAT,
    CODE,
    POPULATIONS,
    REASONING,
    Anchors,
)
from sortedf.traces.prefix_ids import PrefixIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.generator.quantiles import Population

    Ints = NDArray[np.int64]

TOKENS_PER_ID = 16
"""Tokens of a block; what is shared is whole blocks."""

SYSTEM_PROMPT: Anchors = ((200, 0.0), (800, 0.5), (3200, 1.0))
"""Points of the distribution of system prompts, from a few rules to a tool manual."""

EXAMPLES: Anchors = ((400, 0.0), (1200, 0.5), (2400, 1.0))
"""Points of the distribution of a task's solved examples."""

FEW_SHOT_RULES = 320
"""Tokens of the instructions that all tasks of a few-shot trace begin with."""


@dataclass(frozen=True, slots=True)
class SharedKind:
    """A kind of trace with shared prefixes.

    Attributes
    ----------
    prefix : Anchors
        Distribution of the shared prefixes.
    own : Population
        Lengths of each request's part behind it, and of its answer.
    per_prefix : int
        Requests for each prefix, on average if `exact` is not set.
    rules : int
        Tokens before all prefixes, common to all requests.
    exact : bool
        Whether every prefix has the same number of requests, but for the last.
    whole : bool
        Whether the prompt is the prefix: `own` has only the answer.
    """

    prefix: Anchors
    own: tuple[tuple[float, Population], ...]
    per_prefix: int
    rules: int = 0
    exact: bool = True
    whole: bool = False


SHARED_KINDS = {
    "system-prompts": SharedKind(
        SYSTEM_PROMPT, POPULATIONS["chat"], per_prefix=250, exact=False
    ),
    "document-questions": SharedKind(ARTICLE.prefill, ((1.0, CHAT),), per_prefix=20),
    "few-shot": SharedKind(
        EXAMPLES, ((1.0, CODE),), per_prefix=100, rules=FEW_SHOT_RULES, exact=False
    ),
    "samples": SharedKind(
        REASONING.prefill, ((1.0, REASONING),), per_prefix=8, whole=True
    ),
}
"""The kinds by name."""


def draw_shared(
    kind: SharedKind, n: int, per_prefix: int, rng: np.random.Generator
) -> tuple[Ints, Ints, PrefixIds]:
    """Draw prompts, answers, and the ids of shared blocks, in random order."""
    count = -(-n // per_prefix)
    length = lengths_at(kind.prefix, rng.random(count))
    group = rng.permutation(n) // per_prefix
    if not kind.exact:
        group = rng.integers(0, count, n)
    prefill, decode = draw_mixture(n, kind.own, rng)
    prefill = length[group] if kind.whole else prefill + kind.rules + length[group]
    rules = np.arange(kind.rules // TOKENS_PER_ID)
    blocks = length // TOKENS_PER_ID
    first = len(rules) + np.cumsum(blocks) - blocks
    ids = [
        np.concatenate([rules, first[g] + np.arange(blocks[g])]) for g in range(count)
    ]
    return prefill, decode, PrefixIds.of_lists([ids[g] for g in group], TOKENS_PER_ID)
