"""Prompts as chains of KV blocks, to find shared prefixes before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from sortedf.traces.prefix_ids import PrefixIds
    from sortedf.traces.trace import Trace

    Ints = NDArray[np.int64]


class PromptChains:
    """One key per full block of each prompt; equal keys mean equal tokens up to there.

    A chain may go on into the answer, where the prompt of a later turn holds it.

    Parameters
    ----------
    block_size : int
        Tokens per block.
    keys : sequence of int64 arrays
        Keys of each prompt's full blocks, 0 or more.

    Attributes
    ----------
    offset : int64 array, shape (n + 1,)
        The keys of request `i` are `keys[offset[i] : offset[i + 1]]`.
    keys : int64 array
    """

    def __init__(self, block_size: int, keys: Sequence[Ints]) -> None:
        self.block_size = block_size
        self.offset = np.zeros(len(keys) + 1, dtype=np.int64)
        np.cumsum([len(own) for own in keys], out=self.offset[1:])
        self.keys = np.concatenate([*keys, np.zeros(0, dtype=np.int64)])

    @classmethod
    def of_hash_ids(
        cls,
        hash_ids: PrefixIds,
        prefill: ArrayLike,
        block_size: int,
    ) -> PromptChains:
        """Find shared prefixes by a trace's ids of longer blocks.

        Parameters
        ----------
        hash_ids : PrefixIds
        prefill : array_like of int, shape (n,)
            Prompt lengths in tokens. Tokens beyond a prompt's ids are not shared.
        block_size : int
            Of the engine.
        """
        tokens_per_id = hash_ids.tokens_per_id
        known: dict[tuple[int, int], int] = {}
        most = tokens_per_id // block_size + 1  # blocks that end in one of the trace's
        chains = []
        for i, length in enumerate(np.asarray(prefill).tolist()):
            ids = hash_ids[i].tolist()
            length = min(length, len(ids) * tokens_per_id)
            blocks = np.arange(length // block_size)
            within = ((blocks + 1) * block_size - 1) // tokens_per_id
            nodes, before = [], -1
            for own in ids:
                before = known.setdefault((before, own), len(known))
                nodes.append(before)
            first = within * tokens_per_id // block_size
            node = np.array(nodes, dtype=np.int64)[within]
            chains.append(node * most + blocks - first)
        return cls(block_size, chains)

    @classmethod
    def nothing_shared(cls, n: int, block_size: int) -> PromptChains:
        """Return chains of `n` prompts without shared prefixes."""
        return cls(block_size, [np.zeros(0, dtype=np.int64)] * n)

    def with_answers(self, previous: Ints, prefill: Ints, decode: Ints) -> PromptChains:
        """Return chains that continue into the answers of turns that others follow.

        The answer to a turn is in the prompt of the first turn after it, if that begins
        with the whole prompt of the turn and is long enough for the answer, too.

        Parameters
        ----------
        previous : int64 array, shape (n,)
            Position of the turn before each request, below 0 if there is none.
        prefill, decode : int64 arrays, shape (n,)
        """
        keys = [
            self.keys[self.offset[i] : self.offset[i + 1]] for i in range(len(self))
        ]
        own = [len(chain) for chain in keys]
        for i in range(len(self) - 1, -1, -1):
            j = int(previous[i])
            text = int(prefill[j] + decode[j])
            if j < 0 or text > prefill[i]:
                continue
            if np.array_equal(keys[i][: own[j]], keys[j][: own[j]]):
                end = min(text // self.block_size, own[i])
                keys[j] = keys[i][: max(end, own[j])]
        return PromptChains(self.block_size, keys)

    def __len__(self) -> int:
        return len(self.offset) - 1

    def of_requests(self, most_tokens: Ints) -> tuple[Ints, Ints]:
        """Lay out the keys of all blocks that requests may fill.

        Blocks beyond a prompt's keys are not shared and get unique keys.

        Parameters
        ----------
        most_tokens : int64 array, shape (n,)
            Largest length of each prompt plus answer.

        Returns
        -------
        offset : int64 array, shape (n + 1,)
        keys : int64 array
            Those of request `i` begin at `offset[i]`.
        """
        blocks = -(-most_tokens // self.block_size) + 1
        offset = np.zeros(len(blocks) + 1, dtype=np.int64)
        np.cumsum(blocks, out=offset[1:])
        shared = np.diff(self.offset)
        # Position of each shared key: after the previous keys of its request.
        into = np.repeat(offset[:-1] - self.offset[:-1], shared)
        into += np.arange(len(self.keys))
        keys = int(self.keys.max(initial=-1)) + 1 + np.arange(offset[-1])
        keys[into] = self.keys
        return offset, keys


def chains_of(trace: Trace, block_size: int) -> PromptChains | None:
    """Chains of a trace's prompts; None if it does not say what they share.

    With sessions, the prompt of a turn holds the answer to the turn before it.
    """
    if trace.prefix_ids is None:
        return None
    chains = PromptChains.of_hash_ids(trace.prefix_ids, trace.prefill, block_size)
    if trace.sessions is None:
        return chains
    return chains.with_answers(trace.sessions.previous, trace.prefill, trace.decode)
