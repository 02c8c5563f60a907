"""The README does what it says: its Python and its commands are run."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from sortedf.cli.main import exit_code

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks():
    """Every example gives the output that is printed beside it."""
    flags = doctest.ELLIPSIS
    result = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert result.attempted > 5
    assert result.failed == 0


def blocks() -> list[str]:
    text = README.read_text(encoding="utf-8")
    return re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)


def test_shell_blocks(tmp_path, monkeypatch, capsys):
    """Commands without printed output run, one after the other, without an error."""
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    lines = "".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)).splitlines()
    assert lines
    for line in lines:
        name, *arguments = shlex.split(line)
        assert name == "sortedf"
        assert exit_code(arguments) == 0, capsys.readouterr().err


def essential(output: str) -> list[str]:
    """Lines without what differs from run to run: seconds, rules, blank ends."""
    lines = [re.sub(r"\d+\.\d\d s", "# s", line) for line in output.splitlines()]
    words = [" ".join(line.replace("─", "").split()) for line in lines]
    return [line for line in words if line]


@pytest.mark.parametrize("number", range(len(blocks())))
def test_commands(number, tmp_path, monkeypatch, capsys):
    """Each command line prints what the README shows."""
    monkeypatch.chdir(tmp_path)
    for step in blocks()[number].split("$ ")[1:]:
        command, _, output = step.partition("\n")
        name, *arguments = shlex.split(command)
        assert name == "sortedf"
        assert exit_code(arguments) == 0
        assert essential(capsys.readouterr().out) == essential(output)
