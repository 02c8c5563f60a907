"""Engines by name: what vLLM itself sets and refuses, where it is installed."""

from __future__ import annotations

from dataclasses import fields

import pytest

from online.executor.vllm_version import installed_version
from sortedf.engine_model import EngineModel
from sortedf.engine_presets import PRESETS, engine_preset

VLLM = pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed")


def test_the_papers_model_is_the_default():
    """No caps, whole prompts, KV by the token."""
    assert engine_preset("papers", 100) == EngineModel(100)
    assert not EngineModel(100).not_planned()


def test_numbers_override_a_preset():
    """All that is not given stays as it is."""
    engine = engine_preset("vllm-serve", 60_000, max_num_seqs=64, block_size=32)
    assert (engine.max_num_seqs, engine.block_size) == (64, 32)
    assert (engine.max_batched_tokens, engine.chunked_prefill) == (2048, True)


def test_unknown_names_are_answered_with_all():
    with pytest.raises(ValueError, match=r"'tgi'; choose one of: papers, vllm, vllm-s"):
        engine_preset("tgi", 100)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_name_fields_of_the_engine(name):
    """And make an engine that is not refused."""
    assert set(PRESETS[name]) <= {field.name for field in fields(EngineModel)}
    assert engine_preset(name, 10_000).kv_budget == 10_000


@VLLM
@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("memory_gib", "device", "size"),
    [(24, "L4", ""), (80, "A100-SXM4-80GB", ""), (80, "H100", "-large")],
)
def test_presets_are_what_vllm_sets(memory_gib, device, size, monkeypatch):
    """On a card of that memory and name, for each way to start it."""
    from vllm.config import CacheConfig, SchedulerConfig
    from vllm.engine import arg_utils
    from vllm.usage.usage_lib import UsageContext

    class Card:
        def get_device_total_memory(self):
            return memory_gib * 2**30

        def get_device_name(self):
            return device

        def is_tpu(self):
            return False

        def is_cpu(self):
            return False

    monkeypatch.setattr(arg_utils, "current_platform", Card())
    tokens, seqs = arg_utils.EngineArgs.get_batch_defaults(1)
    for way, context in (
        ("serve", UsageContext.OPENAI_API_SERVER),
        ("offline", UsageContext.LLM_CLASS),
    ):
        engine = engine_preset(f"vllm-{way}{size}", 100_000)
        assert engine.max_batched_tokens == tokens[context]
        assert engine.max_num_seqs == seqs[context]
    assert engine.block_size == CacheConfig.DEFAULT_BLOCK_SIZE
    config = SchedulerConfig.default_factory()
    assert engine.chunked_prefill == config.enable_chunked_prefill
    assert engine.reserve_prompt == config.scheduler_reserve_full_isl
    assert engine.watermark == config.watermark
    threshold = config.long_prefill_token_threshold
    assert engine.long_prefill_token_threshold == threshold


@VLLM
@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("tokens", "seqs"), [(7, 8), (8, 8)])
def test_what_vllm_refuses_is_refused(tokens, seqs):
    """A step of fewer tokens than requests that run."""
    from vllm.config import SchedulerConfig

    def refused(make, **given):
        try:
            make(**given)
        except ValueError:
            return True
        return False

    ours = refused(
        EngineModel, kv_budget=100, max_num_seqs=seqs, max_batched_tokens=tokens
    )
    theirs = refused(
        SchedulerConfig.default_factory,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
    )
    assert ours == theirs == (tokens < seqs)


def test_a_step_of_fewer_tokens_than_requests_is_one_line():
    """It names both numbers."""
    with pytest.raises(ValueError, match=r"= 7 but must be at least max_num_seqs = 8"):
        EngineModel(100, max_num_seqs=8, max_batched_tokens=7)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kv_budget", 0, "kv_budget = 0 but must be an integer from 1"),
        ("block_size", 0, "block_size = 0 but must be an integer from 1"),
        ("max_num_seqs", 0, "max_num_seqs = 0 but must be an integer from 1"),
        ("max_batched_tokens", 0, "max_batched_tokens = 0 but must be"),
        ("long_prefill_token_threshold", -1, "long_prefill_token_threshold = -1 but"),
        ("watermark", 1.0, "watermark = 1.0 but must be at least 0 and below 1"),
        ("watermark", float("nan"), "watermark = nan"),
        ("eviction", "forget", "must be 'recompute' or 'restart'"),
    ],
)
def test_parameters_are_checked(field, value, message):
    """Each by its name, with what is allowed."""
    with pytest.raises(ValueError, match=message):
        EngineModel(**{"kv_budget": 100, field: value})
