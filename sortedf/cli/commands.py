"""The commands, each loaded when it is called or listed in the help.

A command is an entry point of the group `sortedf.commands`. Its name is the command's;
its value is a module with

- `HELP` and `EXAMPLE`, a sentence and a line for the help, and
- `command`, a function whose parameters typer makes into options, or `app`, a
  `typer.Typer` with commands of its own.

Another package adds a command by one such module and one line of its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from sortedf.cli.common_options import NamesInHelp
from sortedf.errors import PluginError
from sortedf.plugins import declared, load, owner

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sortedf.commands"

Command = Any
"""A command object, of typer's own class or of click's, depending on the version."""


class CommandGroup(TyperGroup):
    """The program: a group of the commands that entry points declare."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = CommandTable()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, without loading them."""
        return list(self.commands)


class CommandTable(Mapping[str, Command]):
    """Commands by name, loaded one by one."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._loaded:
            self._loaded[name] = _command(name, self._plugins[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    @cached_property
    def _plugins(self) -> dict[str, list[EntryPoint]]:
        plugins: dict[str, list[EntryPoint]] = {}
        for plugin in declared(GROUP):
            plugins.setdefault(plugin.name, []).append(plugin)
        if not any(owner(found[0]) == "sortedf" for found in plugins.values()):
            raise PluginError(
                "the installed metadata of sortedf declares no commands and is older "
                "than its code; install it again."
            )
        return plugins


def _command(name: str, plugins: list[EntryPoint]) -> Command:
    """Load a command, or return one that reports why it cannot be loaded."""
    try:
        if len(plugins) > 1:
            packages = ", ".join(sorted(map(owner, plugins)))
            raise PluginError(
                f"the command {name!r} is declared by several packages: {packages}."
            )
        return load(plugins[0], partial(_built, name))
    except PluginError as error:
        return _broken(name, error)


def _built(name: str, module: Any) -> Command:
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        declare = app.command(
            name, cls=NamesInHelp, help=module.HELP, epilog=module.EXAMPLE
        )
        declare(module.command)
    command = typer.main.get_command(app)
    command.name = name
    return command


def _broken(name: str, error: PluginError) -> Command:
    """Return a command that takes any arguments and raises the error."""

    def fail() -> NoReturn:
        raise error

    app = typer.Typer(add_completion=False)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(name, help=f"Broken: {error}", context_settings=anything)(fail)
    return typer.main.get_command(app)
