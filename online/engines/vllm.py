"""A real vLLM engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from online.engine_table import ENGINES, EngineKind, EngineMaker
from sortedf.cli.output import note

if TYPE_CHECKING:
    from sortedf.engine_model import EngineModel
    from sortedf.request_set import RequestSet

TINY_LONGEST = 32_768
"""Longest prompt plus answer for the tiny model, in tokens."""


def _prepare(
    engine: EngineModel, requests: RequestSet, model: str | None
) -> EngineMaker:
    from online.executor.vllm_engine import VllmEngine, VllmSettings

    longest = int((requests.prefill + requests.decode).max())
    if model is None and longest > TINY_LONGEST:
        raise ValueError(
            f"the longest request has {longest} tokens but the tiny model accepts "
            f"{TINY_LONGEST}; give a --model."
        )
    if model is None:
        note("no --model: a tiny random Llama of two layers makes random answers.")
    settings = VllmSettings(engine, model, max_model_len=longest)
    return lambda table, policy: VllmEngine(table, policy, settings)


def _refusal(engine: EngineModel, prefill: int, decode: int) -> str | None:
    """Why a request can never run; vLLM also requires a slot for its last token."""
    reason = engine.refusal(prefill, decode)
    if reason is None and prefill + decode > engine.kv_budget:
        reason = (
            f"has {prefill + decode} tokens but vLLM takes at most {engine.kv_budget}"
        )
    return reason


ENGINES.register("vllm")(
    EngineKind("a real vLLM", _prepare, takes_model=True, refusal=_refusal)
)
