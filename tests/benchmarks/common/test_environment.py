"""What stands on every page about the run behind it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from benchmarks import __main__ as command
from benchmarks.common import environment


def test_versions_of_what_is_installed(monkeypatch):
    """Of optional packages only those that are there."""
    monkeypatch.setattr(environment, "OPTIONAL", ("pytest", "no-such-package"))
    facts = environment.environment()
    assert facts["pytest"] == version("pytest")
    assert "no-such-package" not in facts


def test_nothing_heavy_is_imported_for_it():
    code = "import sys, benchmarks.common.environment as e; e.environment(); "
    code += "assert not {'torch', 'vllm', 'ortools', 'transformers'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_uncommitted_changes_are_told(monkeypatch, tmp_path, capsys):
    """Before anything is run, since hours may follow."""
    for changed in (True, False):
        monkeypatch.setattr(command, "has_uncommitted_changes", lambda: changed)  # noqa: B023
        assert command.main(["papers", "--results", str(tmp_path)]) == 0
        warned = "uncommitted changes" in capsys.readouterr().err.partition("==")[0]
        assert warned == changed
