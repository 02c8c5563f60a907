"""The plug-in of the guide: built, and everything in it seen and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "sortedf" / "guide" / "plugin"
BUILD = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"

TRACE = "asked_ms,in_tokens,out_tokens\n0,9,2\n1000,30,4\n2000,3,5\n"


@pytest.fixture(scope="module")
def sortedf(tmp_path_factory):
    """Build its wheel, unpack it into a folder, and run commands beside it."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(PLUGIN, folder / "source")
    subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=source, check=True, capture_output=True, text=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    (folder / "log.csv").write_text(TRACE, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "200"}

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            capture_output=True, text=True, check=False, env=environment, cwd=folder,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    return run


BUDGET = ("log.csv", "--kv-budget", "40", "--json")


def test_every_file_of_the_plugin_is_on_the_page():
    """One file for each kind, each shown whole."""
    page = (ROOT / "sortedf" / "guide" / "plugins.md").read_text(encoding="utf-8")
    files = {path.name for path in (PLUGIN / "prompt_tools").glob("*.py")}
    assert files - {"__init__.py"} == {
        "bound.py", "command.py", "method.py", "policy.py", "selector.py",
        "trace_format.py",
    }  # fmt: skip
    for name in files - {"__init__.py"}:
        assert f"literalinclude}} plugin/prompt_tools/{name}" in page


@pytest.mark.slow
def test_the_subcommand(sortedf):
    assert "Show the longest prompts of a trace." in sortedf("sortedf", "--help")
    assert "--count" in sortedf("sortedf", "longest", "--help")
    assert sortedf("sortedf", "longest", "log.csv") == "row 3: 30 tokens\n"


@pytest.mark.slow
def test_the_method_and_the_selector(sortedf):
    """In the list, in the message about an unknown name, and as methods."""
    rows = json.loads(sortedf("sortedf", "methods", "--json"))["rows"]
    assert {"short-prompt-list", "alone"} <= {row["method"] for row in rows}
    error = sortedf("sortedf", "solve", *BUDGET, "--method", "x", code=2)
    for name in ("short-prompt-list", "alone"):
        assert name in error
        found = json.loads(sortedf("sortedf", "solve", *BUDGET, "--method", name))
        assert found["method"] == name
        assert found["total_latency"] >= 2 + 4 + 5


@pytest.mark.slow
def test_the_bound(sortedf):
    """It is listed, is in the help, proves its value, and is not above others."""
    rows = json.loads(sortedf("sortedf", "bounds", "--json"))["rows"]
    assert {row["bound"]: row["certified"] for row in rows}["answers"]
    assert "answers" in sortedf("sortedf", "bound", "--help")
    arguments = ("bound", *BUDGET, "--method", "answers", "--certificate", "proof.json")
    found = json.loads(sortedf("sortedf", *arguments))
    assert found["lower_bound"] == 2 + 4 + 5
    checked = sortedf("sortedf", "check", *BUDGET, "--certificate", "proof.json")
    assert json.loads(checked)["lower_bound"] == 2 + 4 + 5


@pytest.mark.slow
def test_the_policy_and_the_selector_in_another_policy(sortedf):
    rows = json.loads(sortedf("sortedf", "policies", "--json"))["rows"]
    assert {row["policy"]: row["options"] for row in rows}["short-prompt"] == [
        "admission"
    ]
    assert "short-prompt" in sortedf("sortedf", "simulate", *BUDGET, "--policy", "x",
                                     code=2)  # fmt: skip
    names = "short-prompt,sorted-f-online:groups=alone"
    done = json.loads(sortedf("sortedf", "simulate", *BUDGET, "--policy", names))
    assert [row["policy"] for row in done["rows"]] == names.split(",")
    wrong = ("simulate", *BUDGET, "--policy", "sorted-f-online:groups=x")
    assert "alone" in sortedf("sortedf", *wrong, code=2)


@pytest.mark.slow
def test_the_trace_format(sortedf):
    """It is listed, and its name is in the message about an unknown one."""
    rows = json.loads(sortedf("sortedf", "formats", "--json"))["rows"]
    assert {row["format"]: row["columns"] for row in rows}["prompt-log"] == (
        "in_tokens, out_tokens[, asked_ms]"
    )
    code = (
        "from sortedf import read_trace\n"
        "trace = read_trace('log.csv')\n"
        "assert trace.source == 'prompt-log'\n"
        "assert trace.arrival_s.tolist() == [0, 1, 2]\n"
        "open('odd.csv', 'w').write('a,b\\n1,2\\n')\n"
        "try:\n"
        "    read_trace('odd.csv')\n"
        "except ValueError as error:\n"
        "    assert 'prompt-log (in_tokens, out_tokens' in str(error)\n"
    )
    sortedf("timeit", "-n1", "-r1", code)
