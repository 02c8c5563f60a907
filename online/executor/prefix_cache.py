"""vLLM's prefix cache as policies see it: what is shared, and what would be found.

Looked at without a trace: vLLM's statistics of hits and its order of eviction stay as
they are.
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
    """Return a forest of what a scheduler's requests share.

    None where prefix caching is off, or where layers hold KV of different kinds or of a
    window only, so that a request does not hold all blocks of its prefix.

    Parameters
    ----------
    scheduler : vllm.v1.core.sched.scheduler.Scheduler
    waiting : callable
        Gives the request that waits under an id.
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
        # Looked up in the pool, which a reset of the cache gives another map.
        cached = manager.block_pool.cached_block_hash_to_block
        return cached.get_one_block(make_block_hash_with_group_id(key, 0)) is not None

    def num_cached(chain: Chain, most: int) -> int:
        if is_cached(chain, most - 1):
            return most
        low, high = 0, most - 1
        while low < high:  # a block that is missing implies that all after it are
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
    """Hashes of a request's full blocks; of none if it must not read them."""
    if request.skip_reading_prefix_cache or request.resumable:
        return ()
    chain: Chain = request.block_hashes
    return chain
