"""A real vLLM engine for tests: started once for each setting, closed at the end."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from benchmarks.common.data import TINY_MODEL_LEN
from online.executor.tiny_model import write_tiny_model
from online.executor.vllm_version import installed_version
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from online.executor.vllm_engine import VllmEngine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs vLLM where it is not installed, and mark it."""
    for item in items:
        if "real_engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            if installed_version() is None:
                item.add_marker(pytest.mark.skip(reason="vLLM is not installed"))


@pytest.fixture
def real_engine() -> Iterator[Callable[..., VllmEngine]]:
    """Start engines as `real_engine(table, policy, kv_budget=..., ...)`."""
    from online.executor.vllm_engine import VllmEngine, VllmSettings

    started: list[VllmEngine] = []

    def start(table, policy, *, prompts=None, max_model_len=TINY_MODEL_LEN, **given):
        fields = {"block_size": 32, "max_num_seqs": 64, "max_batched_tokens": 8192}
        model = EngineModel.vllm(**{**fields, **given})
        settings = VllmSettings(model, max_model_len=max_model_len)
        engine = VllmEngine(table, policy, settings, prompts=prompts)
        started.append(engine)
        return engine

    yield start
    for engine in started:
        engine.close()
    gc.collect()


@pytest.fixture
def start_llm(real_engine, tmp_path):
    """Start `vllm.LLM` in this process with one of our scheduler classes."""
    from online.executor.vllm_engine import CPU_SETTINGS

    started = []

    def start(*, run_async, options, tokenizer=False, **arguments):
        arguments.setdefault("num_gpu_blocks_override", 101)
        arguments.setdefault("max_num_seqs", 64)
        folder = tmp_path / "model"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in CPU_SETTINGS.items():
                patch.setenv(name, value)
            from online.executor.vllm_version import require_vllm

            vllm = require_vllm()
            kind = "AsyncPolicyScheduler" if run_async else "PolicyScheduler"
            llm = vllm.LLM(
                model=str(write_tiny_model(folder, 1024, tokenizer=tokenizer)),
                skip_tokenizer_init=not tokenizer,
                load_format="dummy",
                dtype="float32",
                block_size=32,
                max_model_len=1024,
                enforce_eager=True,
                async_scheduling=run_async,
                scheduler_cls=f"online.executor.vllm_scheduler.{kind}",
                additional_config={"sortedf": options},
                **arguments,
            )
        started.append(llm)
        return llm, vllm.SamplingParams

    yield start
    for llm in started:
        scheduler_of(llm).shutdown()
        llm.llm_engine.engine_core.shutdown()


def scheduler_of(llm):
    """Return the scheduler of an engine that runs in this process."""
    return llm.llm_engine.engine_core.engine_core.scheduler
