"""The engine's parameters by vLLM's configuration."""

from __future__ import annotations

from typing import Any

from sortedf.engine_model import EngineModel


def rules_of(config: Any, block_size: int, *, num_groups: int = 1) -> EngineModel:
    """Return the engine's parameters from the configuration of a running engine.

    Parameters
    ----------
    config : vllm.config.VllmConfig
    block_size : int
        Tokens of a block, as the scheduler counts them.
    num_groups : int
        Number of KV cache groups, each with its own blocks of the pool.
    """
    scheduler, cache = config.scheduler_config, config.cache_config
    blocks = cache.num_gpu_blocks - 1  # one is the null block
    seqs, tokens = scheduler.max_num_seqs, scheduler.max_num_scheduled_tokens
    return EngineModel.vllm(
        kv_budget=blocks // num_groups * block_size,
        block_size=block_size,
        max_num_seqs=min(seqs, scheduler.max_num_active_seqs or seqs),
        max_batched_tokens=(
            scheduler.max_num_batched_tokens if tokens is None else tokens
        ),
        chunked_prefill=scheduler.enable_chunked_prefill,
        long_prefill_token_threshold=scheduler.long_prefill_token_threshold,
        reserve_prompt=scheduler.scheduler_reserve_full_isl,
        watermark=scheduler.watermark,
        prefix_caching=cache.enable_prefix_caching,
    )
