"""The step engine: vLLM's rules without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from online.engine_table import ENGINES, EngineKind, EngineMaker

if TYPE_CHECKING:
    from sortedf.engine_model import EngineModel
    from sortedf.request_set import RequestSet


def _prepare(
    engine: EngineModel, requests: RequestSet, model: str | None
) -> EngineMaker:
    from online.step_engine import StepEngine  # loads the kernels

    return lambda table, policy: StepEngine(table, engine, policy)


ENGINES.register("step")(EngineKind("vLLM's rules, no model", _prepare))
