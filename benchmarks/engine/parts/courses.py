"""Shared by runs in a real engine: a tiny model's settings, and the step limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.common.data import TINY_MODEL_LEN
from online.executor.execution import execute_plan
from online.executor.vllm_engine import VllmEngine, VllmSettings
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from online.executor.execution import Execution, RunPlan
    from sortedf import Instance

KV_BUDGET = 4096

STEPS = {"large": (8192, 128), "small": (96, 96), "few": (8192, 9)}
"""Tokens and requests of a step: large steps, small ones in which prompts are cut, and
few requests at once."""


def engine_settings(name: str, kv_budget: int = KV_BUDGET) -> VllmSettings:
    """Return the engine's settings for one kind of step."""
    tokens, seqs = STEPS[name]
    engine = EngineModel.vllm(kv_budget, 32, seqs, tokens)
    return VllmSettings(engine, max_model_len=TINY_MODEL_LEN)


def execute(
    plan: RunPlan, instance: Instance, settings: VllmSettings
) -> tuple[Execution, VllmEngine]:
    """Run a course in an engine of its own, which is closed then."""
    engines: list[VllmEngine] = []

    def start(table: Any, policy: Any) -> VllmEngine:
        engines.append(VllmEngine(table, policy, settings))
        return engines[-1]

    execution = execute_plan(plan, instance, start)
    engines[0].close()
    return execution, engines[0]
