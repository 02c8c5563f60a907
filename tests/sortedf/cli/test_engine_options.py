"""The engine on the command line: a preset, and numbers that override it."""

from __future__ import annotations

import json

import pytest

from sortedf.cli.engine_options import EngineOptions
from sortedf.engine_model import EngineModel
from sortedf.engine_presets import engine_preset
from tests.refusals import refused


def test_no_preset_is_the_commands_own():
    """The papers' model, with single numbers."""
    assert EngineOptions(kv_budget="10").engine_model() == EngineModel(10)
    options = EngineOptions(kv_budget="10", block_size=2, max_num_seqs=3)
    assert options.engine_model() == EngineModel(10, block_size=2, max_num_seqs=3)


def test_numbers_override_the_preset():
    """False and 0 are numbers, too."""
    options = EngineOptions(
        kv_budget="900",
        engine_preset="vllm-serve",
        max_num_seqs=8,
        chunked_prefill=False,
        watermark=0.1,
        eviction="restart",
    )
    expected = engine_preset(
        "vllm-serve", 900, max_num_seqs=8, chunked_prefill=False, watermark=0.1,
        eviction="restart",
    )  # fmt: skip
    assert options.engine_model() == expected


@pytest.mark.parametrize("command", ["solve", "compare", "bound"])
def test_the_papers_preset_changes_nothing(cli, trace, command):
    """It is what these commands have without one."""
    shown = []
    for preset in ((), ("--engine-preset", "papers")):
        code, out, _ = cli(command, trace, "--kv-budget", 10, *preset, "--json")
        assert code == 0
        content = json.loads(out)
        rows = content.get("rows", [content])
        assert all(row.pop("runtime_s") >= 0 for row in rows)
        shown.append(content)
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine-preset", "tgi"], "unknown engine preset 'tgi'; choose one of: pa"),
        (
            ["--max-num-seqs", 8, "--max-batched-tokens", 7],
            "max_batched_tokens = 7 but must be at least max_num_seqs = 8",
        ),
        (["--watermark", 1], "watermark = 1.0 but must be"),
        (["--long-prefill-token-threshold", -1], "--long-prefill-token-threshold"),
        (["--eviction", "forget"], "--eviction"),
        (["--block-size", 0], "--block-size"),
    ],
)
@pytest.mark.parametrize("command", ["solve", "bound", "simulate", "run"])
def test_mistakes(cli, trace, command, arguments, message):
    """The same line from each command."""
    assert message in refused(cli(command, trace, "--kv-budget", 100, *arguments))
