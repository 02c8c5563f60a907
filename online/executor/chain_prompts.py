"""Prompts with given shared prefixes, for runs in which answers are not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online import step_kernels as k
from online.executor.prompts import random_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.prompt_chains import PromptChains
    from online.requests import RequestTable

SHARED = 2**32
"""Seeds of shared blocks begin here; below are those of single requests."""


class ChainPrompts:
    """Writes prompts as random tokens, equal where their chains are.

    The prompt of a turn of a session begins with the tokens of the turn before it, and
    with the answer that the engine gave to that.

    Parameters
    ----------
    table : RequestTable
        With chains, and with sessions if it has any.
    chains : PromptChains
    """

    def __init__(self, table: RequestTable, chains: PromptChains) -> None:
        self._table = table
        self._chains = chains
        self._block: dict[int, list[int]] = {}  # tokens by key
        self._said: dict[int, list[int]] = {}  # prompt and answer by request

    def write(self, i: int) -> list[int]:
        """Return the tokens of a request's prompt."""
        size, length = self._chains.block_size, int(self._table.ints[k.PREFILL, i])
        tokens = list(self._history(i))
        for end, key in enumerate(self._keys(i, length).tolist(), start=1):
            begin = (end - 1) * size
            if end * size <= len(tokens):
                continue
            if key not in self._block:
                own = random_prompt(SHARED + key, size)
                self._block[key] = tokens[begin:] + own[len(tokens) - begin :]
            tokens[begin:] = self._block[key]
        return tokens + random_prompt(i, length)[len(tokens) :]

    def ended(self, i: int, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """Note the tokens of a completed request."""
        if self._table.sessions is None:
            return
        size, said = self._chains.block_size, [*prompt, *answer]
        self._said[i] = said
        for end, key in enumerate(self._keys(i, len(said)).tolist(), start=1):
            self._block.setdefault(key, said[(end - 1) * size : end * size])

    def _keys(self, i: int, tokens: int) -> NDArray[np.int64]:
        """Keys of the blocks that lie within the first tokens of a request."""
        begin, end = self._chains.offset[i : i + 2].tolist()
        keys: NDArray[np.int64] = self._chains.keys[begin:end]
        return keys[: tokens // self._chains.block_size]

    def _history(self, i: int) -> Sequence[int]:
        """Tokens of the turn before a request that are in its prompt."""
        sessions = self._table.sessions
        if sessions is None:
            return ()
        before = int(sessions.previous[i])
        said = self._said.get(before, [])
        if not said or len(said) > self._table.ints[k.PREFILL, i]:
            return ()
        own, theirs = (self._keys(one, len(said)) for one in (i, before))
        same = len(own) == len(said) // self._chains.block_size
        return said if same and np.array_equal(own, theirs) else ()
