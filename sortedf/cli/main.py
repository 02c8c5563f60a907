"""Entry point of the command line, and handling of errors."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

import typer

from sortedf import __version__
from sortedf.cli.commands import CommandGroup
from sortedf.cli.progress import log_shown
from sortedf.errors import SortedfError

# The class of all usage errors, whose module depends on the version of typer.
UsageError: Any = typer.BadParameter.__base__

INTERRUPTED = 130
"""Exit code of Ctrl-C in newer versions of typer; no command here uses it."""

app = typer.Typer(
    name="sortedf",
    cls=CommandGroup,
    help="Schedules for LLM serving under a KV-cache budget, with proven lower bounds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    version: bool = typer.Option(False, "--version", help="Show the version."),
) -> None:
    """Options before the command."""
    if version:
        print(f"sortedf {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 success, 1 the run failed, 2 bad usage or bad input. An error is one
    line on standard error with the problem, its location and the allowed values.
    """
    if sys.stderr is None:  # closed: its output is discarded
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  until the end
    if sys.stdout is None:
        sys.exit(_fail("standard output is closed.", 1))
    # A name that the terminal cannot encode must not fail the command at its end.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def exit_code(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    command = typer.main.get_command(app)
    try:
        with log_shown():
            code = command.main(arguments, prog_name="sortedf", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        message = error.format_message()
        return _fail(message, 2) if message else 2  # no message after showing help
    except (SortedfError, ValueError) as error:
        # A RuntimeError is a failure and not misuse, such as a solver's.
        return _fail(str(error), 1 if isinstance(error, RuntimeError) else 2)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted.", 1)
    except MemoryError:
        return _fail("out of memory.", 1)
    except BrokenPipeError:  # only the head of the output was read
        _discard_output()
        return 1
    except OSError as error:  # for example a full disk
        _discard_output()
        where = "standard output" if error.filename is None else error.filename
        return _fail(f"{where}: {error.strerror or error}.", 1)
    if code == INTERRUPTED:
        return _fail("interrupted.", 1)
    return code if isinstance(code, int) else 0


def _discard_output() -> None:
    """Redirect buffered output to the null device, so that Python's exit succeeds."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    print(f"sortedf: error: {' '.join(message.split())}", file=sys.stderr)
    return code
