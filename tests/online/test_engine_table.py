"""A third engine: one file that registers itself."""

from __future__ import annotations

import json

import pytest

from online.engine_table import ENGINES
from tests.refusals import refused

ENGINE = '''
from online.engine_table import ENGINES, EngineKind
from online.step_engine import StepEngine


def prepare(engine, instance, model):
    """The step engine, for short prompts only."""
    if instance.prefill.max() > 9:
        raise ValueError("the short engine takes prompts of up to 9 tokens.")
    return lambda table, policy: StepEngine(table, engine, policy)


def refusal(engine, prefill, decode):
    return "is silent" if decode == 1 else engine.refusal(prefill, decode)


ENGINES.register("short")(EngineKind("short prompts", prepare, refusal=refusal))
'''


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    rows = "prefill_tokens,decode_tokens\n5,3\n6,2\n1,1\n"
    path.write_text(rows, encoding="utf-8")
    return path


def test_every_engine_says_what_it_is():
    assert {"step", "vllm"} <= set(ENGINES)
    assert all(kind.about for kind in ENGINES.values())


@pytest.mark.slow
def test_an_engine_of_another_package_is_driven(package, trace):
    """It prepares, refuses, and is named where a name is unknown."""
    package.install(
        "short-engine",
        group="sortedf.plugins",
        modules={"short_engine": ENGINE},
        short="short_engine",
    )

    def run(*arguments):
        asked = ("--kv-budget", "64", "--method", "svf", "--json")
        done = package("run", str(trace), *asked, *arguments)
        return done.returncode, done.stdout, done.stderr

    code, out, err = run("--engine", "short")
    content = json.loads(out)
    assert code == 0, err
    assert (content["engine"], content["completed"]) == ("short", 2)
    assert content["refused"] == [{"row": 4, "reason": "is silent"}]
    message = refused(run("--engine", "magic"))
    assert "unknown engine 'magic'; choose one of: short, step, vllm" in message
    message = refused(run("--engine", "short", "--model", "m"))
    assert "--model is for --engine vllm only" in message
    trace.write_text("prefill_tokens,decode_tokens\n10,3\n", encoding="utf-8")
    assert "prompts of up to 9 tokens" in refused(run("--engine", "short"))
