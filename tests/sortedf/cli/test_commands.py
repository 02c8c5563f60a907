"""Commands of other packages: one file and one line of metadata."""

from __future__ import annotations

import subprocess
import sys

import pytest

HELLO = """
import typer

HELP = "Greet a trace."
EXAMPLE = "Example: sortedf hello trace.csv --times 2"


def command(trace: str, times: int = 1) -> None:
    print(f"hello {trace} " * times)
"""

GROUP = '''
import typer

app = typer.Typer(help="Greet in several ways.")


@app.command()
def loudly(name: str) -> None:
    """Greet loudly."""
    print(name.upper())


@app.command()
def softly(name: str) -> None:
    """Greet softly."""
    raise ValueError(f"{name} is asleep.")
'''


def test_a_command_of_another_package(package):
    """It is in the help, has a help with its example, runs and refuses."""
    package.install("greeter", modules={"greeter": HELLO}, hello="greeter")
    listed = package("--help").stdout
    for word in ("hello", "Greet a trace.", "solve", "simulate", "rank"):
        assert word in listed
    done = package("hello", "t.csv", "--times", "2")
    assert (done.returncode, done.stdout.split()) == (0, ["hello", "t.csv"] * 2)
    assert "Example: sortedf hello trace.csv" in package("hello", "-h").stdout
    wrong = package("hello", "t.csv", "--times", "x")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("sortedf: error: ")
    assert "Did you mean 'hello'" in package("helo").stderr


def test_several_commands_under_one_name(package):
    """As `rank` has them, with their errors in one line."""
    package.install("greeter", modules={"greeter": GROUP}, greet="greeter")
    assert package("greet", "loudly", "ann").stdout == "ANN\n"
    asleep = package("greet", "softly", "ann")
    assert (asleep.returncode, asleep.stderr) == (
        2,
        "sortedf: error: ann is asleep.\n",
    )


@pytest.mark.parametrize(
    ("modules", "value", "words"),
    [
        ({}, "gone", "ModuleNotFoundError: No module named 'gone'"),
        ({"odd": "1 / 0\n"}, "odd", "ZeroDivisionError: division by zero"),
        ({"odd": "def (\n"}, "odd", "SyntaxError"),
        ({"odd": "import sys; sys.exit(3)\n"}, "odd", "SystemExit: 3"),
        ({"odd": "HELP = 'x'\n"}, "odd", "AttributeError: module 'odd' has no"),
    ],
)
def test_a_broken_command_ends_no_other(package, modules, value, words):
    """One line that names the package, whatever is wrong with it."""
    package.install("greeter", modules=modules, hello=value)
    broken = package("hello", "--times", "2")
    assert broken.returncode == 1
    assert broken.stdout == ""
    assert broken.stderr.count("\n") == 1
    assert words in broken.stderr
    assert "'hello' of the package greeter cannot be loaded" in broken.stderr
    listed = package("--help")
    assert listed.returncode == 0
    assert "Broken: 'hello' of the package greeter" in listed.stdout
    assert package("generate", "--help").returncode == 0


def test_a_name_that_two_packages_declare(package):
    """Neither is called, since nothing says which is meant; the others work."""
    package.install("greeter", modules={"greeter": HELLO}, generate="greeter")
    done = package("generate", "mix", "--n", "3")
    assert done.returncode == 1
    assert "declared by several packages: greeter, sortedf." in done.stderr
    assert package("solve", "--help").returncode == 0


def test_a_broken_plugin_is_named_and_ends_nothing(package):
    """One that would register methods: the methods that are there are listed."""
    package.install("shelf", group="sortedf.plugins", shelf="gone")
    done = package("methods", "--json")
    assert done.returncode == 0
    assert done.stdout.startswith('{"rows": ')
    assert done.stderr.count("\n") == 1
    assert "sortedf: 'shelf' of the package shelf cannot be loaded" in done.stderr


@pytest.mark.parametrize(
    ("option", "heavy"),
    [
        ("--version", {"numba", "scipy", "numpy", "rich", "sortedf.cli.solve"}),
        ("--help", {"numba", "scipy", "lp.prices", "online.step_engine"}),
    ],
)
def test_help_and_version_do_not_wait_for_what_they_do_not_need(option, heavy):
    """For the version not one command, for the help not the compiler of kernels."""
    code = (
        "import sys\n"
        "from sortedf.cli.main import exit_code\n"
        f"exit_code(['{option}'])\n"
        f"print(sorted({heavy} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
