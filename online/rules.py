"""The engine's rules as the step kernels read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online import step_kernels as k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.engine_model import EngineModel


def rules_array(engine: EngineModel) -> NDArray[np.int64]:
    """Return an engine's rules as an array, shape (`step_kernels.NUM_RULES`,)."""
    rules = np.zeros(k.NUM_RULES, dtype=np.int64)
    rules[k.BLOCK_SIZE] = engine.block_size
    rules[k.MAX_SEQS] = engine.seqs_cap
    rules[k.MAX_TOKENS_STEP] = engine.tokens_cap
    rules[k.CHUNKED] = engine.chunked_prefill
    rules[k.THRESHOLD] = engine.long_prefill_token_threshold
    rules[k.RESERVE] = engine.reserve_prompt
    rules[k.WATERMARK] = engine.watermark_blocks
    rules[k.EXTRA] = engine.extra_slots
    rules[k.RESTART] = engine.eviction == "restart"
    return rules
