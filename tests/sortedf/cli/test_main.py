"""The program as a whole: exit codes, interrupts, outputs, one line for a mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import sortedf
from sortedf.cli.commands import GROUP
from sortedf.plugins import declared
from tests.refusals import refused
from tests.sortedf.cli.program import TRACE, run_module


def test_unknown_command(cli):
    """One line, not a page."""
    assert "dance" in refused(cli("dance"))


def test_as_a_module_with_exit_codes(trace):
    """`python -m sortedf` is the same program, seen from outside."""
    good = run_module("solve", str(trace), "--kv-budget", "10", "--json")
    assert good.returncode == 0
    assert json.loads(good.stdout)["n"] == 3
    bad = run_module("solve", str(trace), "--kv-budget", "0")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1
    version = run_module("--version")
    assert version.stdout.startswith("sortedf ")


@pytest.mark.parametrize("command", [plugin.name for plugin in declared(GROUP)])
def test_help_has_an_example(cli, command):
    """Every command shows how to call it."""
    code, out, _ = cli(command, "--help")
    assert code == 0
    assert f"Example: sortedf {command} " in " ".join(f"{out} ".split("\n"))


@pytest.mark.parametrize("command", ["solve", "bound", "compare"])
def test_ctrl_c_is_said_in_one_line(cli, trace, monkeypatch, command):
    """It ended with code 130 and without a word, as this version of typer has it."""

    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sortedf, command, pressed)
    code, out, err = cli(command, trace, "--kv-budget", 10)
    assert (code, out) == (1, "")
    assert err.splitlines()[1:] == ["sortedf: error: interrupted."]


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "TRACE", "-o", "TRACE"),
        ("solve", "TRACE", "--plot", "x.png", "-o", "x.png"),
        ("solve", "TRACE", "--start", "TRACE", "-o", "LINK"),
        ("bound", "TRACE", "--certificate", "TRACE"),
        ("compare", "TRACE", "--plot", "LINK"),
    ],
)
def test_no_output_takes_the_place_of_an_input(cli, trace, arguments, monkeypatch):
    """`sortedf solve t.csv -o t.csv` wrote the schedule over the trace."""
    monkeypatch.chdir(trace.parent)
    (trace.parent / "link.png").symlink_to(trace)
    names = {"TRACE": "trace.csv", "LINK": "link.png"}
    words = [names.get(word, word) for word in arguments]
    message = refused(cli(*words, "--kv-budget", 10))
    assert "cannot be written: it is an" in message
    assert trace.read_text(encoding="utf-8") == TRACE


def test_output_goes_into_a_pipe(trace):
    """As `-o /dev/stdout | cat` does."""
    done = run_module("solve", str(trace), "--kv-budget", "10", "-o", "/dev/stdout")
    assert done.returncode == 0
    assert '"start": [2, 0, 0]' in done.stdout


@pytest.mark.parametrize("arguments", [("methods",), ("methods", "--json")])
def test_a_full_disk_is_one_line(arguments):
    """Standard output that takes nothing gave a traceback, or code 120 at the exit."""
    with open("/dev/full", "w") as full:
        done = run_module(
            *arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr == (
        "sortedf: error: standard output: No space left on device.\n"
    )


def test_a_name_that_cannot_be_shown_undoes_no_work(trace):
    """A terminal of ASCII alone ended the command after the schedule was found."""
    path = trace.rename(trace.with_name("é.csv"))
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    arguments = ("solve", str(path), "--kv-budget", "10")
    done = run_module(*arguments, env=ascii_only, text=False)
    assert done.returncode == 0, done.stderr
    assert b"\\xe9.csv: 3 requests" in done.stdout


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_plots_are_written(cli, trace, tmp_path, command):
    """A picture where people would rather look."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    code, _, _ = cli(command, trace, "--kv-budget", 10, "--plot", path)
    assert code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_output_to_a_redirected_standard_output_keeps_what_is_there(trace, tmp_path):
    """`-o /dev/stdout > both` replaced the file that the table goes to."""
    both = tmp_path / "both"
    with both.open("w") as file:
        file.write("before\n")
        file.flush()
        asked = ("solve", str(trace), "--kv-budget", "10", "-o", "/dev/stdout")
        done = run_module(*asked, capture_output=False, stdout=file)
    text = both.read_text(encoding="utf-8")
    assert done.returncode == 0
    assert text.startswith("before\n")
    assert '"start": [2, 0, 0]' in text
    assert "3 requests" in text


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [(">&-", 1, "sortedf: error: standard output is closed.\n"), ("2>&-", 0, "")],
)
def test_closed_streams(streams, code, said):
    """Without standard output there was a traceback, and without the other one, too."""
    command = f"{sys.executable} -m sortedf methods --json {streams}"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)
    assert bool(done.stdout) == (code == 0)


def test_a_mistake_without_standard_error_has_its_exit_code():
    """The message is lost; the code still says it."""
    command = f"{sys.executable} -m sortedf solve none.csv 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
