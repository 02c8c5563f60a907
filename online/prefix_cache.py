"""The step engine's prefix cache: its blocks, and the forest that policies read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from online import step_kernels as k
from online.prefix_forest import PrefixForest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from online.prefix_forest import Chain
    from online.prompt_chains import PromptChains
    from online.requests import RequestTable


class PrefixCache:
    """Cache blocks by vLLM's rules, for requests that are all known in advance.

    Parameters
    ----------
    table : RequestTable
    num_blocks, block_size : int
    chains : PromptChains
        Chains of all requests of the table.

    Attributes
    ----------
    pool : BlockPool
        The blocks, for `step_once`.
    forest : PrefixForest
        The shared prefixes, for policies.
    """

    def __init__(
        self,
        table: RequestTable,
        num_blocks: int,
        block_size: int,
        chains: PromptChains,
    ) -> None:
        self._table = table
        self._size = block_size
        n = table.num_ids
        most = table.ints[k.PREFILL, :n] + table.ints[k.DECODE, :n]
        offset, keys = chains.of_requests(most)
        self.pool = k.make_pool(num_blocks, offset, keys)
        self._offset = offset.tolist()
        whole: Any = keys
        # Entries and parts of it at little cost.
        self._keys: memoryview[int] = memoryview(whole)
        self.forest = PrefixForest(self.chain_of, self._num_cached, block_size)

    def chain_of(self, i: int) -> Chain:
        """Keys of the full blocks of a request's tokens so far."""
        each = self._table.view.each
        tokens = each.prefill[i] + each.output_tokens[i]
        begin = self._offset[i]
        chain: Chain = self._keys[begin : begin + tokens // self._size]
        return chain

    def before_start(self, ids: Sequence[int]) -> list[tuple[int, Chain, int]]:
        """Record id, chain and cached tokens of requests that may start in a step."""
        cached = self._table.ints[k.CACHED, list(ids)].tolist()
        return [(i, self.chain_of(i), c) for i, c in zip(ids, cached, strict=True)]

    def follow(
        self,
        preempted: Sequence[int],
        started: Sequence[tuple[int, Chain, int]],
        finished: Sequence[int],
    ) -> None:
        """Update the forest after a step, in this order."""
        for i in preempted:
            self.forest.stop(i)
        cached = self._table.ints[k.CACHED]
        for i, chain, before in started:
            self.forest.start(i, chain, (int(cached[i]) - before) // self._size)
        for i in finished:
            self.forest.stop(i)

    def _num_cached(self, i: int, most: int) -> int:
        return int(k.num_cached(self.pool, i, most))
