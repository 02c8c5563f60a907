"""Engines by name: the papers' model, and vLLM as it is usually started.

Line numbers are those of vLLM 0.32.0. Its defaults depend on how it is started (by
`vllm serve`, or by the class `LLM` and `run-batch`) and on the memory of the card:
below 70 GiB and every A100, or at least 70 GiB. From 160 GiB on, serving takes steps of
16,384 tokens as well (engine/arg_utils.py:2923).
"""

from __future__ import annotations

from typing import Any

from sortedf.engine_model import VLLM_RULES, EngineModel

_VLLM = {
    **VLLM_RULES,
    "block_size": 16,  # config/cache.py:72
    "chunked_prefill": True,  # engine/arg_utils.py:2990, for models that generate
    "long_prefill_token_threshold": 0,  # config/scheduler.py:79
    "reserve_prompt": True,  # config/scheduler.py:190
    "watermark": 0.0,  # config/scheduler.py:196
    "prefix_caching": True,  # engine/arg_utils.py:2991, for models that generate
}

PRESETS: dict[str, dict[str, Any]] = {
    "papers": {},
    # vLLM's rules alone: no caps, KV by the token.
    "vllm": {**VLLM_RULES},
    # engine/arg_utils.py:2947 and 2951
    "vllm-serve": {**_VLLM, "max_num_seqs": 256, "max_batched_tokens": 2048},
    # engine/arg_utils.py:2946 and 2950
    "vllm-offline": {**_VLLM, "max_num_seqs": 256, "max_batched_tokens": 8192},
    # engine/arg_utils.py:2937 and 2941
    "vllm-serve-large": {**_VLLM, "max_num_seqs": 1024, "max_batched_tokens": 8192},
    # engine/arg_utils.py:2936 and 2940
    "vllm-offline-large": {**_VLLM, "max_num_seqs": 1024, "max_batched_tokens": 16384},
}
"""Fields of `EngineModel` that differ from the papers' model, by name."""


def engine_preset(name: str, kv_budget: int, **numbers: Any) -> EngineModel:
    """Return a named engine with a KV budget, some of its fields given.

    Parameters
    ----------
    name : str
        A name in `PRESETS`.
    kv_budget : int
        In tokens.
    **numbers
        Fields of `EngineModel` in place of the preset's.

    Raises
    ------
    ValueError
        If there is no such preset, or a field is invalid.

    Examples
    --------
    >>> engine = engine_preset("vllm-serve", 60_000, max_num_seqs=64)
    >>> engine.max_num_seqs, engine.max_batched_tokens
    (64, 2048)
    """
    return EngineModel(kv_budget, **{**preset_fields(name), **numbers})


def preset_fields(name: str) -> dict[str, Any]:
    """Return the fields of a preset, or raise a ValueError that lists the names."""
    if name not in PRESETS:
        raise ValueError(
            f"unknown engine preset {name!r}; choose one of: {', '.join(PRESETS)}."
        )
    return dict(PRESETS[name])
