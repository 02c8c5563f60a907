"""Each test lies where the code that it tests lies, under the same name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent

CROSS_CUTTING = {
    "benchmarks/test_benchmarks.py": "a dry run of each",
    "benchmarks/test_kept_pages.py": "pages against their rows",
    "fuzz/test_fuzz.py": "readers fed with broken files",
    "online/executor/batch/test_kills.py": "commands that are killed",
    "online/executor/batch/test_real_engine.py": "the whole command on vLLM",
    "online/executor/test_cache_agreement.py": "prefixes in vLLM and the step engine",
    "online/executor/test_agreement.py": "vLLM against the step engine",
    "online/executor/test_engine_features.py": "vLLM's settings and our scheduler",
    "online/executor/test_pars.py": "a ranker in vLLM",
    "online/executor/test_prefix_caching.py": "vLLM's cache and ours",
    "online/executor/test_serve.py": "`vllm serve`",
    "online/policies/test_every_policy.py": "what every policy keeps to",
    "online/policies/test_known_trouble.py": "streams that once failed",
    "online/policies/test_lists.py": "policies that follow a method's list",
    "online/policies/test_queues.py": "queues by rank, of moving ranks, and of groups",
    "online/policies/test_quiet_steps.py": "answers that stand, of every policy",
    "online/policies/test_shared_prefixes.py": "prefixes, in every policy",
    "online/policies/test_starvation.py": "waiting limits, in every policy",
    "online/ranking/test_real_encoder.py": "a published encoder",
    "sortedf/guide/test_pages.py": "pages against the tables",
    "sortedf/guide/test_plugin.py": "the guide's plug-in, built and used",
    "sortedf/guide/test_tutorials.py": "each tutorial as a script",
    "sortedf/traces/test_bad_files.py": "what every reader refuses",
    "sortedf/traces/test_chat.py": "conversations in every format that has them",
}
"""Tests of several modules together, and why; outside the mirrored folders all are."""


def mirrored(test: Path) -> list[Path]:
    """Where the module or the package could be that a test is named after."""
    inside = ROOT / test.relative_to(TESTS).parent
    name = test.stem.removeprefix("test_")
    return [
        inside / f"{name}.py",
        inside / f"__{name}__.py",
        inside / name / "__init__.py",
    ]


MIRRORED = ("sortedf", "lp", "online", "benchmarks")

INNER = [
    path.relative_to(TESTS).as_posix()
    for path in sorted(TESTS.rglob("test_*.py"))
    if path.relative_to(TESTS).parts[0] in MIRRORED
]


@pytest.mark.parametrize("name", [name for name in INNER if name not in CROSS_CUTTING])
def test_a_test_is_named_after_a_module(name):
    """`tests/sortedf/test_checker.py` tests `sortedf/checker.py`."""
    modules = mirrored(TESTS / name)
    assert any(module.is_file() for module in modules), (
        f"none of {[str(module.relative_to(ROOT)) for module in modules]} is there: "
        "move the test, or name it in CROSS_CUTTING."
    )


def test_the_list_of_the_others_is_not_longer_than_it_must_be():
    for name in CROSS_CUTTING:
        assert (TESTS / name).is_file(), name
        assert not any(module.is_file() for module in mirrored(TESTS / name)), name


def test_patches_name_what_they_change():
    """`setattr(module, "NAME", ...)`, so that a module that moves is missed at once."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                "setattr"
            ):
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    package = str(first.value).partition(".")[0]
                    assert not (ROOT / package).is_dir(), f"{path}: {first.value}"
