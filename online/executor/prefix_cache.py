"""vLLM's prefix cache for policies: shared prefixes and cached blocks.

It is read without side effects: vLLM's hit statistics and eviction order do not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.v1.core.kv_cache_utils import make_block_hash_with_group_id
from vllm.v1.core.single_type_kv_cache_manager import FullAttentionManager

from online.prefix_forest import PrefixForest

if TYPE_CHECKING:
    from collections.abc import Callable

    from vllm.v1.request import Request

    from online.prefix_forest import Chain


def forest_of(scheduler: Any, waiting: Callable[[int], Request]) -> PrefixForest | None:
    """Return the prefix forest of a scheduler's requests.

    None if prefix caching is off, or if layers hold KV of different kinds or of a
    window only, so that a request does not hold all blocks of its prefix.

    Parameters
    ----------
    scheduler : vllm.v1.core.sched.scheduler.Scheduler
    waiting : callable
        Returns the waiting request with an id.
    """
    manager = scheduler.kv_cache_manager
    kinds = manager.coordinator.single_type_managers
    if not (
        manager.enable_caching
        and len(kinds) == 1
        and type(kinds[0]) is FullAttentionManager
        and kinds[0].block_size == scheduler.hash_block_size == scheduler.block_size
    ):
        return None

    def is_cached(chain: Chain, block: int) -> bool:
        key: Any = chain[block]
        # The map is read from the pool, since a reset of the cache replaces it.
        cached = manager.block_pool.cached_block_hash_to_block
        return cached.get_one_block(make_block_hash_with_group_id(key, 0)) is not None

    def num_cached(i: int, most: int) -> int:
        chain = chain_of(waiting(i))
        if is_cached(chain, most - 1):
            return most
        low, high = 0, most - 1
        while low < high:  # if a block is missing, so are all later ones
            middle = (low + high) // 2
            if is_cached(chain, middle):
                low = middle + 1
            else:
                high = middle
        return low

    return PrefixForest(
        lambda i: chain_of(waiting(i)), num_cached, scheduler.block_size
    )


def chain_of(request: Any) -> Chain:
    """Hashes of a request's full blocks; empty if it must not use the cache."""
    if request.skip_reading_prefix_cache or request.resumable:
        return ()
    chain: Chain = request.block_hashes
    return chain
