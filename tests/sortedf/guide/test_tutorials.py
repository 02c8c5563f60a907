"""Each tutorial runs as a script, and prints what stands beside it."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from online.executor import vllm_version
from online.executor.vllm_version import installed_version

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[3] / "sortedf" / "guide" / "tutorials"
START_ENGINES = {"batch_file", "own_policy", "serve_policy"}
TIMEOUT_S = 900
"""Seconds; an engine can take minutes to start where others work, too."""


def cases():
    """All scripts; what needs an engine or torch is skipped where there is none."""
    no_engine = pytest.mark.skipif(installed_version() is None, reason="no vLLM")
    no_rank = pytest.mark.skipif(
        any(find_spec(name) is None for name in ("torch", "transformers")),
        reason="the extra `rank` is not installed",
    )
    marks = {name: (pytest.mark.vllm, no_engine) for name in START_ENGINES}
    marks["train_ranker"] = (no_rank,)
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


@pytest.mark.parametrize("name", cases())
def test_prints_what_is_shown(name, tmp_path):
    """Line for line, as the page shows it; `sortedf.guide.record` keeps a new one."""
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["batch_file", "serve_policy"])
def test_without_an_engine_they_name_the_extra(name, tmp_path, monkeypatch):
    """In one line, before anything is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vllm_version, "installed_version", lambda: None)
    with pytest.raises(SystemExit, match=r"pip install 'sortedf\[vllm\]'"):
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert not list(tmp_path.iterdir())


def test_without_torch_the_ranker_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install 'sortedf\[rank\]'"):
        runpy.run_path(str(FOLDER / "train_ranker.py"), run_name="__main__")
    assert not list(tmp_path.iterdir())


def test_own_traces_are_taken(tmp_path):
    """The tutorials about traces say that they take a path."""
    trace = tmp_path / "mine.csv"
    trace.write_text("prefill_tokens,decode_tokens\n40,30\n2000,10\n16000,20\n")
    for name, said in (("solve_backlog", "feasible True"), ("savings", "KV lost")):
        done = subprocess.run(
            [sys.executable, FOLDER / f"{name}.py", trace],
            cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        assert said in done.stdout


def test_every_tutorial_has_its_section():
    """A script that no page shows would not be found."""
    page = (FOLDER.parent / "tutorials.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*"):
        if path.suffix in (".py", ".txt"):
            assert f"tutorials/{path.name}\n" in page
