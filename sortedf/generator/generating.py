"""Seeded traces whose lengths look like those of real services."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_TOKENS, checked_int
from sortedf.generator.conversations import (
    CONVERSATIONS,
    THINK_S,
    TURNS,
    draw_conversations,
)
from sortedf.generator.length_draws import draw_mixture
from sortedf.generator.quantiles import POPULATIONS
from sortedf.generator.shared_prompts import SHARED_KINDS, draw_shared
from sortedf.traces.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("mix", *POPULATIONS, *SHARED_KINDS, CONVERSATIONS)
"""Kinds of trace that can be generated."""

DEFAULT_LONG_SHARE = 0.2
"""Share of documents in a mix."""


def generate(
    kind: str,
    n: int,
    *,
    long_share: float | None = None,
    rate: float | None = None,
    seed: int = 0,
    per_prefix: int | None = None,
    turns: float | None = None,
    think_s: float | None = None,
) -> Trace:
    """Generate a trace; the same arguments give the same trace.

    Parameters
    ----------
    kind : str
        A name in `KINDS`. "mix" is chat mixed with documents; for "chat", "documents",
        "code" and "reasoning" and their sources see `sortedf.generator.quantiles`. In
        the others prompts share prefixes: "system-prompts" are chats behind a few
        system prompts, "document-questions" several questions on each article,
        "few-shot" short answers behind the solved examples of a task, "samples"
        several answers to the same prompt. "conversations" are sessions of chats, in
        which each prompt holds what was said before and arrives after that.
    n : int
        Number of requests.
    long_share : float, optional
        Share of documents in a mix, from 0 to 1: `round(n * long_share)` of them, at
        random positions; 0.2 if left out. Only for a mix.
    rate : float, optional
        Requests per second of Poisson arrivals, the first at 0. If left out, every
        request arrives at 0. Conversations begin so often that on average as many
        turns arrive, if all are served at once.
    seed : int
        Seed of all draws, at least 0. Lengths do not depend on `rate`.
    per_prefix : int, optional
        Requests for each shared prefix, on average; by default 250 for
        "system-prompts", 20 for "document-questions", 100 for "few-shot" and 8 for
        "samples". Only for these.
    turns : float, optional
        Mean number of turns of a conversation, at least 1; 4 if left out.
    think_s : float, optional
        Mean seconds between an answer and the next message; 30 if left out.

    Returns
    -------
    Trace

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range; the message says what is allowed.

    Examples
    --------
    >>> from sortedf import generate
    >>> trace = generate("mix", 1000, long_share=0.2, seed=1)
    >>> trace
    Trace(1000 requests, generated, 'mix')
    >>> instance, _ = trace.to_instance(kv_budget=16492)
    >>> instance.num_requests
    1000
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; choose one of: {', '.join(KINDS)}.")
    n = checked_int("n", n, minimum=1, maximum=MAX_TOKENS)
    seed = checked_int("seed", seed, minimum=0, maximum=2**63 - 1)
    if long_share is not None and kind != "mix":
        raise ValueError(f"long_share is for kind 'mix' only, not for {kind!r}.")
    if per_prefix is not None and kind not in SHARED_KINDS:
        names = ", ".join(SHARED_KINDS)
        raise ValueError(f"per_prefix is for {names} only, not for {kind!r}.")
    if (turns is not None or think_s is not None) and kind != CONVERSATIONS:
        raise ValueError(f"turns and think_s are for {CONVERSATIONS} only, not {kind}.")
    turns = TURNS if turns is None else turns
    think_s = THINK_S if think_s is None else think_s
    _check_number("turns", turns, 1 <= turns < math.inf, "at least 1")
    _check_number("think_s", think_s, 0 <= think_s < math.inf, "of seconds, at least 0")
    share = DEFAULT_LONG_SHARE if long_share is None else long_share
    _check_number("long_share", share, 0 <= share <= 1, "from 0 to 1")
    if rate is not None:
        good = math.isfinite(rate) and rate > 0
        _check_number("rate", rate, good, "above 0 requests per second")
    # Two generators, so that lengths do not depend on `rate`.
    lengths, times = np.random.default_rng(seed).spawn(2)
    ids = sessions = None
    if kind == CONVERSATIONS:
        drawn = draw_conversations(n, turns, think_s, lengths)
        prefill, decode, ids, sessions = drawn
    elif kind in SHARED_KINDS:
        shared = SHARED_KINDS[kind]
        each = shared.per_prefix if per_prefix is None else per_prefix
        each = checked_int("per_prefix", each, minimum=1, maximum=MAX_TOKENS)
        prefill, decode, ids = draw_shared(shared, n, each, lengths)
    elif kind == "mix":
        prefill, decode = _mixed(n, round(n * share), lengths)
    else:
        prefill, decode = draw_mixture(n, POPULATIONS[kind], lengths)
    arrival_s = np.zeros(n)
    if rate is not None:
        is_first = np.ones(n, bool) if sessions is None else sessions.is_first
        begun = int(is_first.sum())
        gap_s = times.exponential(n / begun / rate, begun - 1)
        arrival_s[is_first] = np.concatenate([[0.0], np.cumsum(gap_s)])
    return Trace(
        prefill, decode, arrival_s, source="generated", name=kind, prefix_ids=ids,
        sessions=sessions,
    )  # fmt: skip


def _mixed(
    n: int, num_documents: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    is_document = rng.permutation(n) < num_documents
    prefill, decode = np.empty((2, n), dtype=np.int64)
    for kind, mine in (("chat", ~is_document), ("documents", is_document)):
        pairs = draw_mixture(int(mine.sum()), POPULATIONS[kind], rng)
        prefill[mine], decode[mine] = pairs
    return prefill, decode


def _check_number(name: str, value: float, good: bool, rule: str) -> None:
    if isinstance(value, bool) or not good:
        raise ValueError(f"{name} = {value} but must be a number {rule}.")
